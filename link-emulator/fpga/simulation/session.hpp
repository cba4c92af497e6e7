// SPDX-License-Identifier: Apache-2.0
//
// Answers nagi-link's requests to a core (daemon/fpga_protocol.hpp), one after another.
#pragma once

#include "daemon/fpga_socket.hpp"
#include "simulation/core.hpp"

namespace nagi::fpga {

class Session {
 public:
  explicit Session(daemon::fpga::Socket& socket) : socket_(socket) {}

  /// Answer requests until nagi-link closes the socket. If nagi-link requests a feature that the
  /// core lacks, send it an error and throw InputError.
  void serve();

 private:
  void configure(std::span<const std::byte> request);
  void advance(std::span<const std::byte> request);
  void count();
  /// Process the core's events up to `to_ns`, each at its tick.
  void bring_to(std::int64_t to_ns);

  daemon::fpga::Socket& socket_;
  Core core_;
  std::int64_t now_ns_ = 0;
  bool is_configured_ = false;
};

}  // namespace nagi::fpga
