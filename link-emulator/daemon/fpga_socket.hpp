// SPDX-License-Identifier: Apache-2.0
//
// Whole messages of fpga_protocol.hpp through a socket.
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

/// What is in a message, piece by piece.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : left_(bytes) {}

  /// Throws std::system_error if the message is too short.
  template <class Part>
  Part part() {
    static_assert(std::is_trivially_copyable_v<Part>);
    Part read;
    std::memcpy(&read, bytes(sizeof read).data(), sizeof read);
    return read;
  }
  std::span<const std::byte> bytes(std::size_t count);
  /// Throws std::system_error if there is more.
  void require_end() const;

 private:
  std::span<const std::byte> left_;
};

/// A message that is being made.
class MessageWriter {
 public:
  explicit MessageWriter(Kind kind);
  template <class Part>
  MessageWriter& part(const Part& part) {
    static_assert(std::is_trivially_copyable_v<Part>);
    return bytes(std::as_bytes(std::span(&part, 1)));
  }
  MessageWriter& bytes(std::span<const std::byte> bytes);
  /// The whole message.
  [[nodiscard]] std::span<const std::byte> message();

 private:
  std::vector<std::byte> bytes_;
};

class Socket {
 public:
  /// `descriptor`: inherited, and closed with this. `name`: what errors call it. Throws InputError
  /// if it is no such socket.
  Socket(int descriptor, std::string name);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Waits until the message is on its way. Throws std::system_error if the other end is gone.
  void send(MessageWriter& message);
  void send(MessageWriter&& message) { send(message); }
  /// Waits for a message, which is valid until the next is asked for; nothing if the other end is
  /// gone. Throws std::system_error if it breaks off in a message, or says nothing for too long
  /// where `answers` says that it should.
  std::optional<std::span<const std::byte>> receive(Kind& kind, bool answers);

 private:
  bool read(std::span<std::byte> bytes, bool answers);

  io::Descriptor socket_;
  std::string name_;
  std::vector<std::byte> received_;
};

}  // namespace nagi::daemon::fpga
