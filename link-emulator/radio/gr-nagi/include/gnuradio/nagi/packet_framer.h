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
 * \brief Puts a packet into a frame: header, CRC-32, FEC, whitening.
 * \ingroup nagi
 *
 * \details
 * The frame is described at gr::nagi::framing.
 *
 * Message ports:
 * \li in \c packets: u8 PDUs. \c number (uint64) becomes the frame's sequence, modulo 2^32; packets
 *     without one are numbered in order of arrival, from 0. A packet that is empty or too long
 *     throws std::length_error. \c mode (long) says which of the code rates it gets; 0 if missing.
 * \li out \c frames: u8 PDUs with the packet's dictionary and \c number
 */
class NAGI_API packet_framer : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_framer>;

  /*!
   * \param code_rate rate of the code in each mode: "none", "1/2", "2/3" or "3/4"; at least one
   * \param whiten whether to whiten
   * \param max_payload the longest payload in bytes
   *
   * Throws std::invalid_argument for other values.
   */
  static sptr make(const std::vector<std::string>& code_rate, bool whiten = true,
                   std::size_t max_payload = 2048);
};

}  // namespace nagi
}  // namespace gr
