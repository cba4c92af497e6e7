// SPDX-License-Identifier: Apache-2.0
//
// The server of applications that send datagrams.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "arithmetic/reception.hpp"
#include "datagrams/rate_probes.hpp"
#include "ends.hpp"

namespace nagi::applications {

/// The reception of numbered datagrams at a socket.
class DatagramSink {
 public:
  explicit DatagramSink(int socket) : socket_(socket), probed_(socket) {}
  /// Count all waiting datagrams, and answer questions about probes.
  void take_all();
  /// Return the result. `codec` and `playout_ns` are settings of a voice call; `codec` is empty if
  /// there is no call.
  [[nodiscard]] nlohmann::json summarise(const std::string& codec, std::uint64_t playout_ns) const;

 private:
  int socket_;
  Reception reception_;
  ProbedEnd probed_;
  std::uint64_t received_bytes_ = 0;
};

/// Receive numbered datagrams until SIGTERM, answer questions about probes, and return the result.
/// For `codec` and `playout_ns` see DatagramSink::summarise().
nlohmann::json datagrams(const char* application, const Ends& ends, const std::string& codec,
                         std::uint64_t playout_ns);

}  // namespace nagi::applications
