// SPDX-License-Identifier: Apache-2.0
//
// The rate server determines how long the transmission of a packet takes. It sends one packet after
// the other: at a constant rate, from a token bucket, at a rate that follows a trace, or at
// opportunities to send a number of bytes (mahimahi's traces). The server is exact over a busy
// period: the end of each transmission is rounded down to a nanosecond, and the work that remains
// is done before the next packet.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "model/trace.hpp"

namespace nagi::model {

/// A bucket that fills with tokens at a rate, up to a burst. A packet leaves as soon as the bucket
/// has the tokens for its bytes, so a burst leaves immediately. A packet that is longer than the
/// burst waits for the missing tokens. The bucket is full at the beginning.
struct TokenBucket {
  Bitrate rate;
  Bytes burst;
};

/// Instants at each of which `bytes_each` bytes may leave. Bytes that are not used at their instant
/// cannot be used later. The instants repeat with the period, and are at most equal to it.
struct Opportunities {
  std::vector<Duration> at;  // not decreasing
  Bytes bytes_each;
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

  /// Begin to send a packet and return the instant of its end. `back_to_back` is true if the
  /// transmission of the previous packet ended at `at`. The remaining work of the previous packet
  /// is added if `back_to_back` is true, or if the previous packet began and ended at `at`.
  Instant begin(Bytes size, Instant at, bool back_to_back);
  /// Return the duration of a transmission that an idle server begins at `at`.
  [[nodiscard]] Duration air_time(Bytes size, Instant at) const;
  /// Change the rate at `at`. Return the new end of the current transmission. Without one, the
  /// result has no meaning.
  Instant change(RateConfig rate, Instant at);

 private:
  /// Work in units of 10^-9 bits: a rate of R bit/s does R units per nanosecond.
  using Work = unsigned __int128;

  /// The state of opportunities or tokens after some work.
  struct Used {
    std::uint64_t next = 0;  // first unused opportunity, counted from the epoch
    Instant at{};            // time of the last used opportunity, or of the last use of tokens
    Work left = 0;           // unused work of the opportunity at `at`, which ends at `at`
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
  Instant started_{};   // begin of the last transmission
  Work work_ = 0;       // work of the last transmission
  Used used_before_;    // state before the last transmission
  Used used_;           // state after the last transmission
  Instant ended_{};     // end of the last transmission
  Work left_over_ = 0;  // remaining work of the last transmission, less than one nanosecond's
};

}  // namespace nagi::model
