/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! What packet_mux must know of a modem's bursts. */
struct packet_mux_config {
  /*! The payload's in each mode, 1 to 16 of them, mean power 1, 2 to 64 points. */
  std::vector<gr::digital::constellation_sptr> constellations;
  /*! Symbols of the PHY header, at least 32. */
  int header_symbols = 32;
  /*! The payload's symbols come in multiples of this. */
  int block = 1;
  /*! Bytes of the longest packet, at most 4095. */
  int longest = 4095;
  /*! Samples of silence before a burst. */
  int guard = 0;
  /*! Samples of silence after it. */
  int tail = 0;
};

/*!
 * \brief Turns packets into symbols, and what a modulator makes of them into bursts.
 * \ingroup nagi
 *
 * \details
 * The transmitting end of a packet modem, with the modulator between its \c symbols and \c samples.
 * Message ports:
 * \li in \c pdus: PDUs of bytes with \c number and \c begin_ns; with \c mode (long), which of the
 *     constellations they are sent in, 0 if missing.
 * \li out \c symbols: PDUs of complex symbols of mean power 1, PHY header and payload, the latter
 *     filled up with whitened zeros to a multiple of \c block; their number is \c symbol_count in
 * the dictionary.
 * \li in \c samples: the modulated PDUs, one for each, in order.
 * \li out \c bursts: PDUs of complex samples with the dictionary of the packet: \c guard zeros, the
 *     samples, \c tail zeros.
 *
 * A packet longer than \c longest (or without a byte) becomes a burst of no samples, which no
 * receiver detects, and an error in the log: every packet gets an outcome.
 */
class NAGI_API packet_mux : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_mux>;

  /*! Throws std::invalid_argument if something in \p config makes no sense. */
  static sptr make(const packet_mux_config& config);
};

}  // namespace nagi
}  // namespace gr
