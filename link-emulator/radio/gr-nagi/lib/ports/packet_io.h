/* SPDX-License-Identifier: Apache-2.0 */
//
// Packets of an interface as spans of bytes, by AF_PACKET with the packet I/O of nagi-link, or by
// TUN. One thread may receive while another thread sends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/port.hpp"

namespace gr::nagi {

class PacketIo {
 public:
  using Receive =
      std::function<void(std::span<const std::uint8_t> packet, std::int64_t arrived_ns)>;

  virtual ~PacketIo() = default;
  /// Return the descriptor that becomes readable when packets wait.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Call `receive` for packets that wait. Some packets may remain. Throws std::system_error if the
  /// interface no longer exists.
  virtual void receive(const Receive& receive) = 0;
  virtual void send(std::span<const std::uint8_t> packet) = 0;
  [[nodiscard]] virtual ::nagi::io::PortCounters counters() = 0;
};

/// Open a network interface by AF_PACKET, or a TUN interface. Both functions throw
/// std::runtime_error, whose message states the cause and the cure.
std::unique_ptr<PacketIo> open_interface(const std::string& interface);
std::unique_ptr<PacketIo> open_tun(const std::string& interface);

}  // namespace gr::nagi
