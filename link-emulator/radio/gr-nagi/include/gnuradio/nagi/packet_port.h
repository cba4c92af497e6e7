/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/block.h>
#include <gnuradio/nagi/api.h>

#include <cstdint>
#include <memory>
#include <string>

namespace gr {
namespace nagi {

/*!
 * \brief A network interface as a source and a sink of packets.
 * \ingroup nagi
 *
 * \details
 * The kind "af_packet" attaches to an existing interface. It receives all Ethernet frames except
 * those that this host sends, and sends Ethernet frames. The interface must not merge segments
 * (ethtool -K INTERFACE gro off lro off). This kind needs CAP_NET_RAW.
 *
 * The kind "tun" creates a TUN interface and exchanges IP packets. The user sets the addresses and
 * the routes of the interface. This kind needs CAP_NET_ADMIN.
 *
 * Message ports:
 * \li out \c frames: u8 PDUs with \c arrived_ns (long, CLOCK_MONOTONIC in ns): the instant at which
 *     the kernel received the frame or, for TUN, at which the block read the packet
 * \li in \c frames: u8 PDUs. The block sends a PDU at once, or at \c due_ns (CLOCK_MONOTONIC in
 *     ns). PDUs that wait when the flowgraph stops are not sent.
 *
 * When the interface disappears, the block ends, and the blocks that follow end as well.
 */
class NAGI_API packet_port : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_port>;

  /*!
   * Create the block and open the interface.
   *
   * \param interface name of the interface
   * \param kind "af_packet" or "tun"
   *
   * Throws std::invalid_argument for another kind. Throws std::runtime_error if the interface
   * cannot be opened; the message has the cause and the cure.
   */
  static sptr make(const std::string& interface, const std::string& kind = "af_packet");

  /*! Return the number of frames received from the interface. */
  virtual std::uint64_t received() const = 0;
  /*! Return the number of frames sent to the interface. */
  virtual std::uint64_t sent() const = 0;
  /*! Return the number of frames that could not be sent. */
  virtual std::uint64_t send_failures() const = 0;
  /*! Return the number of received frames that were discarded, because the socket's buffer was full
      or the frame was longer than the interface's MTU allows. */
  virtual std::uint64_t discarded() const = 0;
};

}  // namespace nagi
}  // namespace gr
