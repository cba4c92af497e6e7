/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! What interference must know. */
struct interference_config {
  std::uint64_t seed = 0;      /*!< of all draws */
  std::uint32_t direction = 0; /*!< names the disturbed channel among those of the seed */
  double sample_rate = 1.0;    /*!< Hz, of all bursts */
  /*! Of each interferer the power of its bursts here, over the mean power 1 of those that are
      disturbed, in dB: -10 for a carrier-to-interference ratio of 10 dB. One to eight of them. */
  std::vector<double> levels_db;
  /*! How long after a burst's end it is awaited that interferers tell of bursts that overlap it. */
  std::int64_t margin_ns = 2'000'000;
};

/*!
 * \brief Adds what others send at the same time and frequency: co-channel interference.
 * \ingroup nagi
 *
 * \details
 * Bursts of interferers are added to those that overlap them in time, sample by sample (to the
 * nearest one), each at its level and with a phase of its own, drawn by the seed, the direction and
 * the interfering burst's number.
 *
 * Message ports, all of c32 PDUs with \c number and \c begin_ns:
 * \li in \c bursts: in the order of their begins, as the channel has made them
 * \li in \c interferer, \c interferer1 and so on, one for each level: as they are sent
 * \li out \c bursts: the same with interference, each \c margin_ns after its end
 *
 * What overlaps a burst is known only once time has passed its end. Instants of event time are
 * compared with CLOCK_MONOTONIC as the PDUs come in: the quickest one says how they belong
 * together. So what comes out depends on the bursts alone, as long as each comes in within \c
 * margin_ns. An interferer's burst that comes later, when one that it overlaps has left, throws
 * std::runtime_error.
 *
 * Bursts that are held when the flowgraph stops go nowhere.
 */
class NAGI_API interference : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<interference>;

  /*! Throws std::invalid_argument, naming the value, if one is impossible. */
  static sptr make(const interference_config& config);
};

}  // namespace nagi
}  // namespace gr
