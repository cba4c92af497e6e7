// SPDX-License-Identifier: Apache-2.0
//
// The rate server determines how long the transmission of a packet takes. It sends one packet after
// the other: at a constant rate, from a token bucket, at a rate that follows a trace, or at
// opportunities to send a number of bytes (mahimahi's traces). It is exact over a busy period: each
// end is rounded down to a nanosecond, and the remaining work is done before the next packet.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "model/trace.hpp"

namespace nagi::model {

/// A bucket that fills with tokens at a rate, up to a burst. A packet leaves as soon as the bucket
/// has the tokens for its bytes, so a burst leaves at once. A packet that is longer than the burst
/// waits for the missing tokens. The bucket is full at the beginning.
struct TokenBucket {
  Bitrate rate;
  Bytes burst;
};

/// Instants at which `each` bytes may leave. Bytes that are not used at that instant are lost. The
/// instants repeat with the period, which is not shorter than the last of them.
struct Opportunities {
  std::vector<Duration> at;  // not decreasing
  Bytes each;
  Duration period{};
};

using RateConfig = std::variant<Unlimited, Bitrate, TokenBucket, Trace<Bitrate>, Opportunities>;

inline bool is_limited(const RateConfig& rate) { return !std::holds_alternative<Unlimited>(rate); }

/// Return the mean rate over a period, rounded down, or nothing if the rate is unlimited.
std::optional<Bitrate> mean_rate(const RateConfig& rate);

/// A server that transmits one packet at a time.
class RateServer {
 public:
  explicit RateServer(RateConfig rate) : rate_(std::move(rate)) {}

  /// Begin to send a packet and return the instant of its end. `at_once` is true if the
  /// transmission of the previous packet ended at `at`. The remaining work of the previous packet
  /// is added if `at_once`, or if that packet began and ended at `at`.
  Instant begin(Bytes size, Instant at, bool at_once);
  /// Return how long a packet takes that an idle server begins to send at `at`.
  [[nodiscard]] Duration air_time(Bytes size, Instant at) const;
  /// Change the rate at `at`. Return the new end of the packet in transmission, if there is one.
  Instant change(RateConfig rate, Instant at);

 private:
  /// Work in units of 10^-9 bits: a rate of R bit/s does R units per nanosecond.
  using Work = unsigned __int128;

  /// The use of opportunities or tokens.
  struct Used {
    std::uint64_t next = 0;  // first unused opportunity, counted from the epoch
    Instant at{};            // time of the last used opportunity, or of the last use of tokens
    Work left = 0;           // unused work of that opportunity; valid at `at` only
    std::optional<__int128> tokens;  // tokens left; may be slightly negative because of rounding
  };

  /// The result of serving for some time.
  struct Progress {
    Instant at;  // end of the work, or `until` if that comes first
    Work left;   // remaining work; if the work has ended, less than one nanosecond's
    Used used;
  };

  static Work work_of(Bytes size) { return Work{size.count} * 8 * 1'000'000'000; }
  [[nodiscard]] Progress serve(Work work, Instant from, Instant until, Used used) const;
  static Progress serve_at(Bitrate rate, Work work, Instant from, Instant until);
  static Progress serve_from_bucket(const TokenBucket& bucket, Work work, Instant from,
                                    Instant until, Used used);
  static Progress serve_along(const Trace<Bitrate>& trace, Work work, Instant from, Instant until);
  static Progress serve_at_opportunities(const Opportunities& all, Work work, Instant from,
                                         Instant until, Used used);

  RateConfig rate_;
  Instant started_{};   // begin of the last packet
  Work work_ = 0;       // its work
  Used used_before_;    // use before it
  Used used_;           // use after it
  Instant ended_{};     // its end
  Work left_over_ = 0;  // its remaining work, to be done before a packet that follows at once
};

}  // namespace nagi::model
