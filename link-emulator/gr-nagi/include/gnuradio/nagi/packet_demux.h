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
 * announced, zeros after the end of the burst, and the symbols of them.
 *
 * Samples come in items of \c item_samples of which the first \c item_prefix (a cyclic prefix) are
 * left out; the dictionary has \c item_count (without \c overlap) and the fraction of a sample \c
 * timing by which they should have begun later.
 *
 * \li in \c bursts: PDUs of complex samples with \c number and \c begin_ns.
 * \li out \c pdus: one for each burst, in order, with the burst's dictionary: PDUs of bytes with
 *     \c snr_db (mean power of the burst over mean power of the noise, from the payload's deviation
 *     from the nearest ideal points); or without a byte and with \c outcome 1 (not detected) or 2
 *     (the header's CRC is wrong).
 */
class NAGI_API packet_demux : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_demux>;

  /*!
   * \param constellation     the payload's, mean power 1, 2 to 16 points
   * \param header_symbols    of the PHY header, at least 32
   * \param longest           bytes of the longest payload that is believed, at most 4095
   * \param preamble          its samples, as sent
   * \param repeat_begin      where its repeating part begins
   * \param repeat_lag        samples until it repeats
   * \param repeat_length     products in the correlation of both
   * \param spread            samples of multipath to expect in it: its second half is
   *                          then a symbol with a cyclic prefix so long; 0: the strongest path's
   * \param threshold         of the normalised correlation's power, 0 to 1
   * \param item_samples      samples in an item
   * \param item_prefix       of these to leave out
   * \param item_symbols      payload symbols in an item
   * \param header_items      items before the payload
   * \param overlap           items that a demodulator wants beyond its own
   * \param snr_offset_db     what the symbols' SNR is above the samples'
   * \param channel_key       dictionary key of the channel's estimate
   * \param weights           where in that estimate, a vector of complex gains, those of an item's
   *                          symbols are, to weight their deviations by; empty: all count alike
   *
   * Throws std::invalid_argument if one of them makes no sense.
   */
  static sptr make(gr::digital::constellation_sptr constellation, int header_symbols, int longest,
                   const std::vector<gr_complex>& preamble, int repeat_begin, int repeat_lag,
                   int repeat_length, int spread, double threshold, int item_samples,
                   int item_prefix, int item_symbols, int header_items, int overlap,
                   double snr_offset_db, const std::string& channel_key,
                   const std::vector<int>& weights);
};

}  // namespace nagi
}  // namespace gr
