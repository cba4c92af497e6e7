/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <vector>

namespace gr {
namespace nagi {

/*! Parameters of packet_mux: the bursts of a modem. */
struct packet_mux_config {
  /*! Constellation of the payload in each mode: 1 to 16 modes, 2 to 64 points, mean power 1. */
  std::vector<gr::digital::constellation_sptr> constellations;
  /*! Number of symbols of the PHY header, at least 32. */
  int header_symbols = 32;
  /*! The payload is padded to a multiple of this number of symbols. */
  int block = 1;
  /*! Maximum length of a packet in bytes, at most 4095. */
  int longest = 4095;
  /*! Number of zero samples before a burst. */
  int guard = 0;
  /*! Number of zero samples after a burst. */
  int tail = 0;
};

/*!
 * \brief A block that maps packets to symbols and forms bursts from the modulated samples.
 * \ingroup nagi
 *
 * \details
 * The block is the transmitting end of a packet modem. The modulator is a separate block between
 * \c symbols and \c samples.
 *
 * Message ports:
 * \li in \c pdus: PDUs of bytes with \c number and \c begin_ns. \c mode (long) selects the
 *     constellation, 0 if missing.
 * \li out \c symbols: PDUs of complex symbols of mean power 1: the PHY header, then the payload.
 *     Whitened zeros fill the payload up to a multiple of \c block symbols. \c symbol_count in the
 *     dictionary is the number of symbols.
 * \li in \c samples: the modulated PDUs, one per PDU of \c symbols, in order
 * \li out \c bursts: PDUs of complex samples with the dictionary of the packet: \c guard zeros, the
 *     samples, \c tail zeros
 *
 * A packet without bytes, or longer than \c longest, becomes a burst without samples, and the block
 * logs an error. The receiver reports such a burst as not detected, so every packet gets an
 * outcome.
 */
class NAGI_API packet_mux : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_mux>;

  /*! Create the block.

      Throws std::invalid_argument if a value is out of range. */
  static sptr make(const packet_mux_config& config);
};

}  // namespace nagi
}  // namespace gr
