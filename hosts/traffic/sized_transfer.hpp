// SPDX-License-Identifier: Apache-2.0
//
// A transfer of a given size over a connection of its own, as its sender sees it.
#pragma once

#include <cstdint>
#include <optional>

#include "ends.hpp"

namespace nagi::applications {

class SizedTransfer {
 public:
  /// Begins to connect.
  SizedTransfer(const Ends& ends, std::uint64_t size_bytes);
  /// What to wait for.
  [[nodiscard]] pollfd watched() const;
  /// Goes on after these events.
  void handle(short events);
  /// Breaks the connection off.
  void give_up(const char* why);

  /// Why it is over; null: it is not.
  [[nodiscard]] const char* ended() const { return ended_; }
  [[nodiscard]] std::int64_t started_ns() const { return start_ns_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_; }
  /// From connect() until the connection was there.
  [[nodiscard]] std::optional<std::int64_t> connect_ns() const { return connect_ns_; }
  /// From connect() until the last byte was acknowledged.
  [[nodiscard]] std::optional<std::int64_t> completion_ns() const { return completion_ns_; }

 private:
  void finish(const char* why);

  std::int64_t start_ns_;
  std::uint64_t size_;
  io::Descriptor socket_;
  std::uint64_t sent_ = 0;
  const char* ended_ = nullptr;
  std::optional<std::int64_t> connect_ns_;
  std::optional<std::int64_t> completion_ns_;
};

}  // namespace nagi::applications
