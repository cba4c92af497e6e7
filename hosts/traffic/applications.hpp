// SPDX-License-Identifier: Apache-2.0
//
// The applications. Each function runs a client or a server until the application ends or SIGTERM
// arrives, and returns the result as JSON. Times in results are in seconds, or null if the event
// did not happen or its time is unknown.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "ends.hpp"
#include "sizes.hpp"

namespace nagi::applications {

inline constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// Bulk data: as much as TCP accepts, until SIGTERM.
nlohmann::json bulk_client(const Ends& ends);
nlohmann::json bulk_server(const Ends& ends);

/// A transfer of a given size. It is complete when its last byte has been acknowledged.
struct Transfer {
  std::uint64_t size_bytes = 0;
  std::uint64_t max_duration_ns = unlimited;  ///< counted from connect()
};
nlohmann::json transfer_client(const Ends& ends, const Transfer& settings);
nlohmann::json transfer_server(const Ends& ends);

/// A stream that is played while it arrives; see arithmetic/playback.hpp.
struct PlaybackSettings {
  std::uint64_t rate_bps = 0;            ///< rate of the payload
  std::uint64_t interval_ns = 0;         ///< time between attempts to read
  std::uint64_t size_bytes = unlimited;  ///< size of the whole stream
  std::uint64_t wait_ns =
      unlimited;  ///< time from the first byte to the first attempt; unlimited means one interval
  bool ahead = false;  ///< if true, the server sends as fast as TCP accepts, not at `rate_bps`
  /// Return the number of bytes that are played per interval. Throws InputError if it is below 1.
  [[nodiscard]] std::uint64_t chunk_bytes() const;
};
nlohmann::json playback_client(const Ends& ends, const PlaybackSettings& settings);
nlohmann::json playback_server(const Ends& ends, const PlaybackSettings& settings);

/// Datagrams at a constant rate. Each datagram has a number and the time at which it was sent.
struct Cbr {
  std::uint64_t rate_bps = 0;       ///< rate of IP packets, including headers
  std::uint64_t search_ns = 0;      ///< time to search for the best rate up to `rate_bps` before
                                    ///< sending data; 0 for no search
  std::uint64_t payload_bytes = 0;  ///< payload of a datagram
  std::uint64_t duration_ns = unlimited;  ///< time to send data, without the search
  std::string codec;                      ///< "g711" for a voice call, otherwise empty
  std::uint64_t playout_ns = 60'000'000;  ///< delay of the playout buffer of a voice call
};
nlohmann::json cbr_client(const Ends& ends, const Cbr& settings);
nlohmann::json cbr_server(const Ends& ends, const Cbr& settings);

/// A sender that a token bucket limits; each token permits `token_bytes` bytes.
struct TokenBucketSettings {
  std::uint64_t depth_bytes = 20'000;
  std::uint64_t token_bytes = 1'000;
  std::uint64_t tokens = 20;  ///< tokens added per interval
  std::uint64_t interval_ns = 30'000'000;
};
nlohmann::json token_bucket_client(const Ends& ends, const TokenBucketSettings& settings);
nlohmann::json token_bucket_server(const Ends& ends);

/// Transfers that arrive as a Poisson process, with a mean time of `interval_ns` between them.
struct Poisson {
  std::uint64_t interval_ns = 0;
  Sizes sizes;
  Seed seed;
};
nlohmann::json poisson_client(const Ends& ends, const Poisson& settings);
nlohmann::json poisson_server(const Ends& ends);

/// A source that is alternately on and off.
struct OnOff {
  std::uint64_t rate_bps = 0;  ///< rate while on: of payload with TCP, of IP packets with UDP
  std::uint64_t on_ns = 0;     ///< mean length of a period in which the source is on
  std::uint64_t off_ns = 0;    ///< mean length of a period in which the source is off
  std::string distribution = "exponential";  ///< distribution of both times: exponential, pareto
  double shape = 1.5;                        ///< shape of the Pareto distribution, above 1
  std::string transport = "udp";             ///< udp or tcp
  std::uint64_t payload_bytes = 1'000;       ///< payload of a datagram, or of one write to TCP
  Seed seed;
};
nlohmann::json onoff_client(const Ends& ends, const OnOff& settings);
nlohmann::json onoff_server(const Ends& ends, const OnOff& settings);

/// Requests, each sent after the response to the previous one. The server sends the data.
struct RequestResponse {
  std::uint64_t request_bytes = 200;
  Sizes sizes;                 ///< sizes of responses
  std::uint64_t pause_ns = 0;  ///< mean of the exponential time from a response to the next request
  std::uint64_t count = unlimited;  ///< number of requests
  Seed seed;
};
nlohmann::json request_response_client(const Ends& ends, const RequestResponse& settings);
nlohmann::json request_response_server(const Ends& ends, const RequestResponse& settings);

}  // namespace nagi::applications
