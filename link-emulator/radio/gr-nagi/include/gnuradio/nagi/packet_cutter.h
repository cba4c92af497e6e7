/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/api.h>
#include <gnuradio/sync_block.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace gr {
namespace nagi {

/*!
 * \brief Cuts a stream of bytes into packets, for framer and modem to make bursts of.
 * \ingroup nagi
 *
 * \details
 * In: bytes. The message port out \c packets is that of outlet(): PDUs of bytes with \c number,
 * from 0. It is a block of its own, as GNU Radio ends blocks whose stream has ended, and those that
 * they send messages to, with packets that are on their way there.
 *
 * Either each packet is preceded by its length in two bytes, the higher one first, or its first
 * byte has a tag with its length (an integer), as gr-digital's tagged streams have. A length of 0
 * or above \c max_packet, a tag that is no integer, and in a tagged stream a byte that belongs to
 * no packet, throw std::runtime_error with their place: what follows could not be understood. A
 * packet that the stream's end cuts off is left out, with a warning in the log.
 *
 * Messages wait where they are slowest worked on, however many there are. \c window limits them:
 * every message at outlet()'s port \c outcomes is the end of one packet, such as packet_deframer
 * makes of it; the stream waits meanwhile.
 */
class NAGI_API packet_cutter : virtual public gr::sync_block {
 public:
  using sptr = std::shared_ptr<packet_cutter>;

  /*!
   * \param length_tag   the tag's key; empty: lengths are in the stream
   * \param max_packet   bytes of the longest packet, 1 to 65535
   * \param window       packets that may be under way; 0: any number
   *
   * Throws std::invalid_argument if \p max_packet is none of these.
   */
  static sptr make(const std::string& length_tag, std::size_t max_packet, std::size_t window);

  /*! The block with the message ports \c packets (out) and \c outcomes (in). */
  virtual gr::block_sptr outlet() const = 0;

  /*! Packets that have left. */
  virtual std::uint64_t packets() const = 0;
};

}  // namespace nagi
}  // namespace gr
