// SPDX-License-Identifier: Apache-2.0
//
// The server of what sends datagrams.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "arithmetic/reception.hpp"
#include "datagrams/rate_probes.hpp"
#include "ends.hpp"

namespace nagi::applications {

/// Numbered datagrams that come to a socket.
class DatagramSink {
 public:
  explicit DatagramSink(int socket) : socket_(socket), probed_(socket) {}
  /// Counts all that wait, and answers what is asked of probes.
  void take_all();
  /// Returns what has come; `codec` and `playout_ns`: of a voice call.
  [[nodiscard]] nlohmann::json summarise(const std::string& codec, std::uint64_t playout_ns) const;

 private:
  int socket_;
  Reception reception_;
  ProbedEnd probed_;
  std::uint64_t received_bytes_ = 0;
};

/// Receives numbered datagrams until SIGTERM, and says what has come of probes. `codec` and
/// `playout_ns`: of a voice call.
nlohmann::json datagrams(const char* application, const Ends& ends, const std::string& codec,
                         std::uint64_t playout_ns);

}  // namespace nagi::applications
