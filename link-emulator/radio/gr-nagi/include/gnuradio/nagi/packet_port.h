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
 * \brief Packets of a network interface, in and out.
 * \ingroup nagi
 *
 * \details
 * Kind "af_packet" takes all Ethernet frames of an interface there is, but for those this host
 * sends, and sends Ethernet frames by it. The interface must not merge segments (ethtool -K
 * INTERFACE gro off lro off). Kind "tun" makes a TUN interface, whose IP packets come and go; what
 * it takes for addresses and routes is for others to set. Both need CAP_NET_RAW or CAP_NET_ADMIN.
 *
 * Message ports:
 * \li out \c frames: u8 PDUs with \c arrived_ns (long): when the kernel saw the frame, on
 *     CLOCK_MONOTONIC in ns; for TUN, when it was read
 * \li in \c frames: u8 PDUs to send, at once or at \c due_ns, on the same clock. What is not sent
 *     when the flowgraph stops goes nowhere.
 *
 * When the interface goes away, this block is done, and so are those that follow it.
 */
class NAGI_API packet_port : virtual public gr::block {
 public:
  using sptr = std::shared_ptr<packet_port>;

  /*!
   * \param interface its name
   * \param kind "af_packet" or "tun"
   *
   * Throws std::invalid_argument for another kind, std::runtime_error if the interface cannot be
   * opened: it says why, and what to do.
   */
  static sptr make(const std::string& interface, const std::string& kind = "af_packet");

  /*! Frames taken from the interface. */
  virtual std::uint64_t received() const = 0;
  /*! Frames given to it. */
  virtual std::uint64_t sent() const = 0;
  /*! Frames the kernel would not take. */
  virtual std::uint64_t send_failures() const = 0;
  /*! Frames discarded on the way in: they did not fit the socket's buffer, or the interface's MTU.
   */
  virtual std::uint64_t discarded() const = 0;
};

}  // namespace nagi
}  // namespace gr
