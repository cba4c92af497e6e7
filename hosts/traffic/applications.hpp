// SPDX-License-Identifier: Apache-2.0
//
// The applications. Each function runs one end until it is over or SIGTERM comes, and returns its
// result. Times in results are seconds; null: it is not known, or did not happen.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "ends.hpp"
#include "sizes.hpp"

namespace nagi::applications {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// As much data as TCP takes, until SIGTERM.
nlohmann::json bulk_client(const Ends& ends);
nlohmann::json bulk_server(const Ends& ends);

/// A transfer of a given size. It is complete when its last byte has been acknowledged.
struct Transfer {
  std::uint64_t size_bytes = 0;
  std::uint64_t max_duration_ns = unlimited;  ///< from connect() on
};
nlohmann::json transfer_client(const Ends& ends, const Transfer& settings);
nlohmann::json transfer_server(const Ends& ends);

/// A stream that is played as it comes: see arithmetic/playback.hpp.
struct PlaybackSettings {
  std::uint64_t rate_bps = 0;            ///< of the payload
  std::uint64_t interval_ns = 0;         ///< between attempts
  std::uint64_t size_bytes = unlimited;  ///< of the whole stream
  std::uint64_t wait_ns =
      unlimited;       ///< from the first byte to the first attempt; unlimited: an interval
  bool ahead = false;  ///< sent as fast as TCP takes it, not at `rate_bps`
  /// Bytes of an attempt. Throws InputError if there are none.
  [[nodiscard]] std::uint64_t chunk_bytes() const;
};
nlohmann::json playback_client(const Ends& ends, const PlaybackSettings& settings);
nlohmann::json playback_server(const Ends& ends, const PlaybackSettings& settings);

/// Datagrams at a constant rate. Each has a number and the time at which it was sent.
struct Cbr {
  std::uint64_t rate_bps = 0;       ///< of IP packets, headers included
  std::uint64_t search_ns = 0;      ///< before it sends data: for the rate, up to `rate_bps`, at
                                    ///< which most arrives; 0: none
  std::uint64_t payload_bytes = 0;  ///< of a datagram
  std::uint64_t duration_ns = unlimited;
  std::string codec;                      ///< g711: a voice call; empty: none
  std::uint64_t playout_ns = 60'000'000;  ///< of a call: the receiver's buffer
};
nlohmann::json cbr_client(const Ends& ends, const Cbr& settings);
nlohmann::json cbr_server(const Ends& ends, const Cbr& settings);

/// A sender that a token bucket limits; of its tokens each is good for `token_bytes`.
struct TokenBucketSettings {
  std::uint64_t depth_bytes = 20'000;
  std::uint64_t token_bytes = 1'000;
  std::uint64_t tokens = 20;  ///< that come at every interval
  std::uint64_t interval_ns = 30'000'000;
};
nlohmann::json token_bucket_client(const Ends& ends, const TokenBucketSettings& settings);
nlohmann::json token_bucket_server(const Ends& ends);

/// Transfers that arrive as a Poisson process, `interval_ns` apart in the mean.
struct Poisson {
  std::uint64_t interval_ns = 0;
  Sizes sizes;
  Seed seed;
};
nlohmann::json poisson_client(const Ends& ends, const Poisson& settings);
nlohmann::json poisson_server(const Ends& ends);

/// A source that is on and off by turns.
struct OnOff {
  std::uint64_t rate_bps = 0;  ///< while it is on: of payload by TCP, of IP packets by UDP
  std::uint64_t on_ns = 0;     ///< mean
  std::uint64_t off_ns = 0;    ///< mean
  std::string distribution = "exponential";  ///< of both; or pareto
  double shape = 1.5;                        ///< of pareto, more than 1
  std::string transport = "udp";             ///< or tcp
  std::uint64_t payload_bytes = 1'000;       ///< of a datagram, or what TCP is given at once
  Seed seed;
};
nlohmann::json onoff_client(const Ends& ends, const OnOff& settings);
nlohmann::json onoff_server(const Ends& ends, const OnOff& settings);

/// Requests, each after the response to the one before. The server sends the data.
struct RequestResponse {
  std::uint64_t request_bytes = 200;
  Sizes sizes;                      ///< of responses
  std::uint64_t pause_ns = 0;       ///< mean of the exponential time between response and request
  std::uint64_t count = unlimited;  ///< of requests
  Seed seed;
};
nlohmann::json request_response_client(const Ends& ends, const RequestResponse& settings);
nlohmann::json request_response_server(const Ends& ends, const RequestResponse& settings);

}  // namespace nagi::applications
