/* SPDX-License-Identifier: Apache-2.0 */
//
// Packets of an interface as spans of bytes: AF_PACKET by nagi-link's own packet I/O, or TUN. One
// thread may receive while another sends.
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
  /// Becomes readable when packets wait.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Calls `receive` with packets that wait, some at least. Throws std::system_error if the
  /// interface is gone.
  virtual void receive(const Receive& receive) = 0;
  virtual void send(std::span<const std::uint8_t> packet) = 0;
  [[nodiscard]] virtual ::nagi::io::PortCounters counters() = 0;
};

/// Both throw std::runtime_error, which says what is wrong and what to do.
std::unique_ptr<PacketIo> open_interface(const std::string& interface);
std::unique_ptr<PacketIo> open_tun(const std::string& interface);

}  // namespace gr::nagi
