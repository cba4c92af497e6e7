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
 * \brief A block that unpacks frames and reports the outcome of each frame.
 * \ingroup nagi
 *
 * \details
 * gr::nagi::framing describes the frame.
 *
 * Message ports:
 * \li in \c frames: u8 PDUs with frames. \c mode (long) selects the code rate, 0 if missing. If the
 *     PDU has \c soft_bits (f32vector), as packet_demux adds them, a code decodes the soft bits.
 *     PDUs whose \c outcome or \c fate reports a loss pass unchanged.
 * \li out \c packets: one u8 PDU per frame with the frame's dictionary and \c outcome: 0 with the
 *     payload, or 3 (payload error) without bytes. A frame whose sequence differs from the PDU's
 *     \c number also counts as damaged.
 */
class NAGI_API packet_deframer : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_deframer>;

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
