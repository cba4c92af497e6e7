/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! Parameters of interference. */
struct interference_config {
  std::uint64_t seed = 0; /*!< seed of all random draws */
  /*! Number that gives each disturbed channel of one seed its own random draws; below 2^23. */
  std::uint32_t direction = 0;
  double sample_rate = 1.0; /*!< Hz, of all bursts */
  /*! One to eight levels in dB, one per interferer: power of the interferer's bursts at this
      receiver relative to the mean power 1 of the disturbed bursts. A level of -10 is a
      carrier-to-interference ratio of 10 dB. */
  std::vector<double> levels_db;
  /*! Time in ns for which the block waits, after the end of a burst, for bursts of interferers that
      overlap the burst; at most 10^9. */
  std::int64_t margin_ns = 2'000'000;
};

/*!
 * \brief Co-channel interference: adds the bursts of other senders at the same time and frequency.
 * \ingroup nagi
 *
 * \details
 * The block adds each interfering burst to the bursts that overlap it in time, aligned to the
 * nearest sample. Each interfering burst has the level of its interferer and a random phase. The
 * phase depends on the seed, the direction, the interferer and the number of the interfering burst.
 *
 * All message ports carry c32 PDUs with \c number and \c begin_ns:
 * \li in \c bursts: bursts of the channel block, in the order of their \c begin_ns
 * \li in \c interferer, \c interferer1 and so on, one port per level: bursts as the interferer
 *     sends them
 * \li out \c bursts: the bursts with interference. Each burst leaves \c margin_ns after its end.
 *
 * The block must wait until a burst has ended before it knows all bursts that overlap it. The block
 * therefore maps event time to CLOCK_MONOTONIC. The PDU that arrived with the least delay so far
 * determines the mapping. The output depends on the bursts alone if each PDU arrives at most \c
 * margin_ns late. An interfering burst that begins before the end of a burst that has already left
 * throws std::runtime_error.
 *
 * Bursts that the block holds when the flowgraph stops are not sent.
 */
class NAGI_API interference : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<interference>;

  /*! Create the block.

      Throws std::invalid_argument, naming the value, if a value is out of range. */
  static sptr make(const interference_config& config);
};

}  // namespace nagi
}  // namespace gr
