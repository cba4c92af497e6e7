/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gr {
namespace nagi {

/*!
 * \brief nagi's link model: queue, rate, loss, delay, in real time.
 * \ingroup nagi
 *
 * \details
 * One direction of a link as nagi-link emulates it: given the same configuration, seed and
 * arrivals, it loses and delays the same packets.
 *
 * Message ports:
 * \li in \c frames: u8 PDUs. They arrive at \c arrived_ns (long, CLOCK_MONOTONIC) if they have it
 *     and the model is not past it, else now.
 * \li out \c frames: the same PDUs, at the instants of their delivery, which are in \c due_ns
 * \li out \c losses: those that are lost, with \c fate: "queue_overflow" or "channel_loss"
 *
 * Packets still held when the flowgraph stops go nowhere.
 */
class NAGI_API link : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<link>;

  /*!
   * \param config_json a direction's configuration, as in nagi-link's: {"rate_bps": 10000000, ...}
   * \param seed of all random draws
   * \param id the link's, which names it in random draws
   * \param direction "forward" or "backward"
   * \param carries what PDUs are: "ip" packets or "ethernet" frames. Sizes in the configuration are
   *        IP bytes.
   *
   * Throws std::invalid_argument, naming the key, if the configuration is not possible.
   */
  static sptr make(const std::string& config_json, std::uint64_t seed, std::uint32_t id,
                   const std::string& direction = "forward", const std::string& carries = "ip");

  /*! Packets that came in. */
  virtual std::uint64_t offered() const = 0;
  /*! Packets that came out at the other end. */
  virtual std::uint64_t delivered() const = 0;
  /*! Packets that its queue discipline discarded. */
  virtual std::uint64_t queue_overflows() const = 0;
  /*! Packets that its loss model lost. */
  virtual std::uint64_t channel_losses() const = 0;
  /*! Packets marked Congestion Experienced. */
  virtual std::uint64_t marked() const = 0;
  /*! Packets waiting, in transmission or under way. */
  virtual std::uint64_t held() const = 0;
};

}  // namespace nagi
}  // namespace gr
