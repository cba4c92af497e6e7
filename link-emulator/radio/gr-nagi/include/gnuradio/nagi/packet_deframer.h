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
 * \brief Takes frames apart, and says what became of each.
 * \ingroup nagi
 *
 * \details
 * The frame is described at gr::nagi::framing.
 *
 * Message ports:
 * \li in \c frames: u8 PDUs: frames; or losses, which have an \c outcome that is not 0 and pass as
 *     they are. \c mode (long) says which of the code rates they have, 0 if missing. With
 *     \c soft_bits (f32vector), as packet_demux gives them, a code decodes these
 * \li out \c packets: for each one u8 PDU with the frame's dictionary and \c outcome: 0 with the
 *     payload, or 3 (payload error), empty. A frame with another \c number than that of its PDU is
 *     damaged too.
 */
class NAGI_API packet_deframer : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_deframer>;

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
