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

/*! Parameters of packet_demux: the signal of a modem, and its detection. */
struct packet_demux_config {
  /*! Constellation of the payload in each mode: 1 to 16 modes, 2 to 64 points, mean power 1. */
  std::vector<gr::digital::constellation_sptr> constellations;
  /*! Index of the demodulator of each mode, counted from 0. */
  std::vector<int> demodulators = {0};
  /*! True to output soft decisions along with the bytes. */
  bool soft_bits = false;
  /*! Number of symbols of the PHY header, at least 32. */
  int header_symbols = 32;
  /*! Maximum length of a payload in bytes, at most 4095. A header that announces a longer payload
      counts as damaged. */
  int longest = 4095;
  /*! Samples of the preamble, as sent. */
  std::vector<gr_complex> preamble;
  /*! Sample of the preamble at which the repeating part begins. */
  int repeat_begin = 0;
  /*! Distance from the repeating part to its repetition, in samples. */
  int repeat_lag = 1;
  /*! Number of products in the correlation of the repeating part with its repetition. */
  int repeat_length = 1;
  /*!
   * Maximum multipath spread in samples. Above 0, the second half of the preamble must be a symbol
   * with a cyclic prefix of this length. With 0, the timing follows the strongest path.
   */
  int spread = 0;
  /*! Detection threshold for the power of the normalised correlation, between 0 and 1. */
  double threshold = 0.2;
  /*! Number of samples per item. */
  int item_samples = 1;
  /*! Number of samples to discard at the start of each item (cyclic prefix). */
  int item_prefix = 0;
  /*! Number of payload symbols per item. */
  int item_symbols = 1;
  /*! Number of items before the payload (preamble and PHY header). */
  int header_items = 1;
  /*! Number of further items that a demodulator needs after the items that it demodulates. */
  int overlap = 0;
  /*! SNR of the symbols minus SNR of the samples, in dB. */
  double snr_offset_db = 0;
  /*! Dictionary key of the channel estimate. */
  std::string channel_key;
  /*!
   * Indices into the channel estimate, a vector of complex gains, one index per symbol of an item.
   * The powers of these gains weight deviations and soft decisions. If the list is empty, all
   * symbols have equal weight.
   */
  std::vector<int> weights;
};

/*!
 * \brief A block that finds the packet in each burst and reports its outcome.
 * \ingroup nagi
 *
 * \details
 * The block is the receiving end of a packet modem. It replaces gr-digital's header_payload_demux,
 * which works on an endless stream: that block cannot report that no packet was detected, and its
 * treatment of a packet depends on earlier samples. Here one burst is one PDU, and the outcome of a
 * burst is a function of the burst's samples alone.
 *
 * The block detects the preamble and removes the frequency offset. The demodulators are separate
 * blocks between these ports:
 * \li out \c header, in \c header_symbols: the samples of preamble and header, and the symbols from
 *     the header's demodulator. The demodulator may add a channel estimate under the key
 *     \c channel_key, which the payload's demodulator receives.
 * \li out \c payload, in \c payload_symbols: the samples of the payload, whose length the header
 *     announces, and the symbols from the payload's demodulator. Zeros replace samples after the
 *     end of the burst. Further demodulators, for other modes, have the ports \c payload1 and
 *     \c payload_symbols1, and so on.
 *
 * Samples for demodulators are grouped in items of \c item_samples, without the first
 * \c item_prefix of each item (a cyclic prefix). The dictionary has \c item_count (without
 * \c overlap), and \c timing, the timing error as a fraction of a sample. The error is positive if
 * the items begin too early.
 *
 * The other message ports are:
 * \li in \c bursts: PDUs of complex samples with \c number and \c begin_ns
 * \li out \c pdus: one PDU per burst, in order, with the burst's dictionary. The PDU of a received
 *     packet has the bytes, \c snr_db, \c mode (long) and, on request, \c soft_bits (f32vector).
 *     The PDU of a lost packet has no bytes and \c outcome 1 (not detected) or 2 (header error).
 * \li out \c symbols: one PDU of the payload's complex symbols per burst with a valid header, as
 *     soon as the symbols are available, for display. The dictionary is the burst's with \c mode
 *     and \c snr_db.
 *
 * \c snr_db is the mean power of the burst over the mean power of the noise. The noise is estimated
 * from the deviation of the payload's symbols from the nearest ideal points. If noise makes wrong
 * decisions frequent, the noise is estimated from the header's symbols instead.
 *
 * \c soft_bits has a log-likelihood ratio per bit, positive for 1. The ratio compares the nearest
 * point with bit 0 to the nearest point with bit 1.
 */
class NAGI_API packet_demux : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_demux>;

  /*! Create the block.

      Throws std::invalid_argument if a value is out of range, or if the values contradict each
      other. */
  static sptr make(const packet_demux_config& config);
};

}  // namespace nagi
}  // namespace gr
