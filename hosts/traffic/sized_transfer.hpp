// SPDX-License-Identifier: Apache-2.0
//
// The sender of a transfer of a given size. Each transfer has its own connection.
#pragma once

#include <cstdint>
#include <optional>

#include "ends.hpp"

namespace nagi::applications {

class SizedTransfer {
 public:
  /// Begin to connect to the server.
  SizedTransfer(const Ends& ends, std::uint64_t size_bytes);
  /// Return the descriptor and the events for which the caller must wait.
  [[nodiscard]] pollfd watched() const;
  /// Continue the transfer after `events` of this descriptor.
  void handle(short events);
  /// Abort the transfer. ended() then returns `reason`.
  void give_up(const char* reason);

  /// Return the reason why the transfer ended, or null while it continues.
  [[nodiscard]] const char* ended() const { return ended_; }
  [[nodiscard]] std::int64_t started_ns() const { return start_ns_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
  /// Return the time from connect() until the connection was open; nothing if it never was.
  [[nodiscard]] std::optional<std::int64_t> connect_ns() const { return connect_ns_; }
  /// Return the time from connect() until the last byte was acknowledged; nothing if it never was.
  [[nodiscard]] std::optional<std::int64_t> completion_ns() const { return completion_ns_; }

 private:
  void finish(const char* reason);

  std::int64_t start_ns_;
  std::uint64_t size_;
  io::Descriptor socket_;
  std::uint64_t sent_ = 0;
  const char* ended_ = nullptr;
  std::optional<std::int64_t> connect_ns_;
  std::optional<std::int64_t> completion_ns_;
};

}  // namespace nagi::applications
