// SPDX-License-Identifier: Apache-2.0
//
// Messages of fpga_protocol.hpp over a socket.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "daemon/fpga_protocol.hpp"
#include "io/descriptor.hpp"

namespace nagi::daemon::fpga {

/// Reads the parts of a message in order.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : left_(bytes) {}

  /// Read the next part of the message. Throws std::system_error if the message is too short.
  template <class Part>
  Part part() {
    static_assert(std::is_trivially_copyable_v<Part>);
    Part read;
    std::memcpy(&read, bytes(sizeof read).data(), sizeof read);
    return read;
  }
  std::span<const std::byte> bytes(std::size_t count);
  /// Throw std::system_error if the message has further bytes.
  void require_end() const;

 private:
  std::span<const std::byte> left_;
};

/// Builds a message.
class MessageWriter {
 public:
  explicit MessageWriter(Kind kind);
  template <class Part>
  MessageWriter& part(const Part& part) {
    static_assert(std::is_trivially_copyable_v<Part>);
    return bytes(std::as_bytes(std::span(&part, 1)));
  }
  MessageWriter& bytes(std::span<const std::byte> bytes);
  /// Return the complete message.
  [[nodiscard]] std::span<const std::byte> message();

 private:
  std::vector<std::byte> bytes_;
};

/// A socket between nagi-link and nagi-fpga.
class Socket {
 public:
  /// Take over an inherited descriptor. `name` names the socket in errors. Throws InputError if the
  /// descriptor is not a SOCK_STREAM socket.
  Socket(int descriptor, std::string name);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Send a message. Throws std::system_error if the other end has closed the socket.
  void send(MessageWriter& message);
  void send(MessageWriter&& message) { send(message); }
  /// Wait for a message, store its kind in `kind`, and return its content, or nothing if the other
  /// end has closed the socket. The message is valid until the next call. If `has_time_limit` is
  /// true, the message must arrive within a minute. Throws std::system_error if a message is
  /// incomplete or late.
  std::optional<std::span<const std::byte>> receive(Kind& kind, bool has_time_limit);

 private:
  bool read(std::span<std::byte> bytes, bool has_time_limit);

  io::Descriptor socket_;
  std::string name_;
  std::vector<std::byte> received_;
};

}  // namespace nagi::daemon::fpga
