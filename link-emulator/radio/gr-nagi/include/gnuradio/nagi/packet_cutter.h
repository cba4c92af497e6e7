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
 * \brief A block that splits a stream of bytes into packets for a framer and a modem.
 * \ingroup nagi
 *
 * \details
 * The input is a stream of bytes. The packets leave by the message port \c packets of outlet(), as
 * PDUs of bytes with \c number, counted from 0. outlet() is a separate block, because GNU Radio
 * ends a block whose stream has ended. GNU Radio then also ends the blocks that receive the block's
 * messages, and their waiting packets would be lost.
 *
 * A packet's length comes either before the packet, in two bytes, most significant byte first, or
 * in an integer tag on the packet's first byte, as in gr-digital's tagged streams. These errors
 * throw std::runtime_error, which names the position in the stream, because the rest of the stream
 * cannot be interpreted:
 * \li a length of 0 or above \c max_packet
 * \li a tag that is no integer
 * \li in a tagged stream, a byte that belongs to no packet, or a tag within a packet
 *
 * If the stream ends within a packet, the block discards the packet and logs a warning.
 *
 * GNU Radio does not limit the number of waiting messages. \c window limits the number of packets
 * in flight: the stream waits while \c window packets are in flight. Each message at the port
 * \c outcomes of outlet(), such as an output of packet_deframer, ends one packet.
 */
class NAGI_API packet_cutter : virtual public gr::sync_block {
 public:
  using sptr = std::shared_ptr<packet_cutter>;

  /*!
   * Create the block.
   *
   * \param length_tag   key of the tag; if empty, the lengths are in the stream
   * \param max_packet   maximum length of a packet in bytes, 1 to 65535
   * \param window       maximum number of packets in flight; 0 for no limit
   *
   * Throws std::invalid_argument if \p max_packet is out of range.
   */
  static sptr make(const std::string& length_tag, std::size_t max_packet, std::size_t window);

  /*! Return the block with the message ports \c packets (out) and \c outcomes (in). */
  virtual gr::block_sptr outlet() const = 0;

  /*! Return the number of packets that were sent. */
  virtual std::uint64_t packets() const = 0;
};

}  // namespace nagi
}  // namespace gr
