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
 * The block models one direction of a link. With equal configuration, seed and arrivals, the block
 * and nagi-link lose and delay the same packets.
 *
 * Message ports:
 * \li in \c frames: u8 PDUs. A PDU arrives at its \c arrived_ns (long, CLOCK_MONOTONIC in ns), or
 *     now if the PDU has no \c arrived_ns. If \c arrived_ns is before the model's current time, the
 *     PDU arrives at the model's current time.
 * \li out \c frames: the delivered PDUs. A PDU leaves at the instant of its delivery, which is in
 *     \c due_ns (long, CLOCK_MONOTONIC in ns).
 * \li out \c losses: the lost PDUs with \c fate: "queue_overflow", "aqm_drop" or "channel_loss"
 *
 * Packets that the block holds when the flowgraph stops are not delivered.
 */
class NAGI_API link : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<link>;

  /*!
   * Create the block.
   *
   * \param config_json configuration of one direction, as in nagi-link's configuration:
   *        {"rate_bps": 10000000, ...}. Sizes are in IP bytes.
   * \param seed seed of all random draws
   * \param id number of the link, which gives each link of one seed its own random draws
   * \param direction "forward" or "backward"
   * \param carries content of the PDUs: "ip" for IP packets, "ethernet" for Ethernet frames
   *
   * Throws std::invalid_argument, naming the key, if the configuration is invalid.
   */
  static sptr make(const std::string& config_json, std::uint64_t seed, std::uint32_t id,
                   const std::string& direction = "forward", const std::string& carries = "ip");

  /*! Return the number of packets that arrived. */
  virtual std::uint64_t offered() const = 0;
  /*! Return the number of delivered packets, without duplicates. */
  virtual std::uint64_t delivered() const = 0;
  /*! Return the number of packets dropped because the queue was full. */
  virtual std::uint64_t queue_overflows() const = 0;
  /*! Return the number of packets lost on the channel. */
  virtual std::uint64_t channel_losses() const = 0;
  /*! Return the number of packets marked Congestion Experienced (ECN). */
  virtual std::uint64_t marked() const = 0;
  /*! Return the number of packets that wait, are in transmission or propagate. */
  virtual std::uint64_t held() const = 0;
};

}  // namespace nagi
}  // namespace gr
