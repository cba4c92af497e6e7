/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/digital/constellation.h>
#include <gnuradio/nagi/api.h>

#include <memory>
#include <string>
#include <vector>

namespace gr {
namespace nagi {

/*! What packet_demux must know of a modem's signal. */
struct packet_demux_config {
  /*! The payload's in each mode, 1 to 16 of them, mean power 1, 2 to 64 points. */
  std::vector<gr::digital::constellation_sptr> constellations;
  /*! Which demodulator each mode has, counted from 0. */
  std::vector<int> demodulators = {0};
  /*! Whether soft decisions leave with the bytes. */
  bool soft_bits = false;
  /*! Symbols of the PHY header, at least 32. */
  int header_symbols = 32;
  /*! Bytes of the longest payload that is believed, at most 4095. */
  int longest = 4095;
  /*! The preamble's samples, as sent. */
  std::vector<gr_complex> preamble;
  /*! Where its repeating part begins. */
  int repeat_begin = 0;
  /*! Samples until it repeats. */
  int repeat_lag = 1;
  /*! Products in the correlation of both. */
  int repeat_length = 1;
  /*!
   * Samples of multipath to expect in it: its second half is then a symbol with a cyclic prefix so
   * long; 0: the strongest path's.
   */
  int spread = 0;
  /*! Of the normalised correlation's power, 0 to 1. */
  double threshold = 0.2;
  /*! Samples in an item. */
  int item_samples = 1;
  /*! Of these to leave out. */
  int item_prefix = 0;
  /*! Payload symbols in an item. */
  int item_symbols = 1;
  /*! Items before the payload. */
  int header_items = 1;
  /*! Items that a demodulator wants beyond its own. */
  int overlap = 0;
  /*! What the symbols' SNR is above the samples'. */
  double snr_offset_db = 0;
  /*! Dictionary key of the channel's estimate. */
  std::string channel_key;
  /*!
   * Where in that estimate, a vector of complex gains, those of an item's symbols are, to weight
   * deviations and soft decisions by; empty: all count alike.
   */
  std::vector<int> weights;
};

/*!
 * \brief Finds the packet in each burst and says what became of it.
 * \ingroup nagi
 *
 * \details
 * The receiving end of a packet modem, in the place of gr-digital's header_payload_demux, which
 * works on an endless stream: it can not say that nothing was detected, and what it does with one
 * packet depends on what came before. Here one burst is one PDU, and its outcome a function of its
 * samples alone. It detects the preamble, takes the frequency offset out, and has two demodulators
 * between its ports:
 * \li out \c header, in \c header_symbols: the preamble and the header's samples, and what their
 *     demodulator makes of them. What that puts into the dictionary as \c channel_key (its estimate
 * of the channel) goes to the other demodulator too.
 * \li out \c payload, in \c payload_symbols: the payload's samples, as many as the header
 *     announced, zeros after the end of the burst, and the symbols of them. Further demodulators,
 *     of other modes, have the ports \c payload1 and \c payload_symbols1, and so on.
 *
 * Samples come in items of \c item_samples of which the first \c item_prefix (a cyclic prefix) are
 * left out; the dictionary has \c item_count (without \c overlap) and the fraction of a sample \c
 * timing by which they should have begun later.
 *
 * \li in \c bursts: PDUs of complex samples with \c number and \c begin_ns.
 * \li out \c pdus: one for each burst, in order, with the burst's dictionary: PDUs of bytes with
 *     \c snr_db (mean power of the burst over mean power of the noise, from the payload's deviation
 *     from the nearest ideal points, or where these are often others than those sent, from the
 *     header's), \c mode (long) and, if they are wanted, \c soft_bits (f32vector: for each bit a
 *     log-likelihood ratio by the nearest point of 0 and of 1, positive for 1); or without a byte
 *     and with \c outcome 1 (not detected) or 2 (the header's CRC is wrong).
 * \li out \c symbols: of each burst whose header was understood, as soon as they are there: PDUs of
 *     the payload's complex symbols with the same dictionary, to look at.
 */
class NAGI_API packet_demux : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_demux>;

  /*! Throws std::invalid_argument if something in \p config makes no sense. */
  static sptr make(const packet_demux_config& config);
};

}  // namespace nagi
}  // namespace gr
