/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * \brief A block that packs packets into frames: header, CRC-32, FEC, whitening.
 * \ingroup nagi
 *
 * \details
 * gr::nagi::framing describes the frame.
 *
 * Message ports:
 * \li in \c packets: u8 PDUs. \c number (uint64) modulo 2^32 is the frame's sequence. Packets
 *     without \c number are numbered in the order of their arrival, from 0. \c mode (long) selects
 *     the code rate, 0 if missing. A packet that is empty or too long throws std::length_error.
 * \li out \c frames: u8 PDUs with the packet's dictionary and \c number
 */
class NAGI_API packet_framer : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_framer>;

  /*!
   * Create the block.
   *
   * \param code_rate code rate of each mode: "none", "1/2", "2/3" or "3/4"; at least one
   * \param whiten true for whitening
   * \param max_payload maximum length of a payload in bytes
   *
   * Throws std::invalid_argument for other values.
   */
  static sptr make(const std::vector<std::string>& code_rate, bool whiten = true,
                   std::size_t max_payload = 2048);
};

}  // namespace nagi
}  // namespace gr
