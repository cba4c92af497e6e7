// SPDX-License-Identifier: Apache-2.0
//
// The rate server: how long a packet is in transmission. It sends one packet after the other at a
// constant rate, at a rate that follows a trace, or at opportunities to send a number of bytes
// (mahimahi's traces). Exact over a busy period: what rounding an end down to a nanosecond leaves
// over is done before the next packet.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "model/trace.hpp"

namespace nagi::model {

/// A bucket that fills with tokens at a rate, up to a burst; a packet leaves when it has the tokens
/// for its bytes. Bursts therefore leave at once. A packet that is longer than the burst waits
/// until there are enough tokens all the same. It is full in the beginning.
struct TokenBucket {
  Bitrate rate;
  Bytes burst;
};

/// Instants at which `each` bytes may leave; what is not used at once is lost. They repeat with the
/// period, which is not shorter than the last of them.
struct Opportunities {
  std::vector<Duration> at;  // not decreasing
  Bytes each;
  Duration period{};
};

using RateConfig = std::variant<Unlimited, Bitrate, TokenBucket, Trace<Bitrate>, Opportunities>;

inline bool is_limited(const RateConfig& rate) { return !std::holds_alternative<Unlimited>(rate); }

/// The mean over a period, rounded down; nothing if unlimited.
std::optional<Bitrate> mean_rate(const RateConfig& rate);

class RateServer {
 public:
  explicit RateServer(RateConfig rate) : rate_(std::move(rate)) {}

  /// Begins to send a packet; returns when it will have been sent. `at_once`: the packet before was
  /// being sent until `at`. Work that is left of one that began and ended at `at` is added, too.
  Instant begin(Bytes size, Instant at, bool at_once);
  /// How long a packet would take if it began at `at`, the server being idle.
  [[nodiscard]] Duration air_time(Bytes size, Instant at) const;
  /// Goes on at another rate. Returns when the packet in transmission, if there is one, will now
  /// have been sent.
  Instant change(RateConfig rate, Instant at);

 private:
  /// Bits times 10^9: a rate of R bit/s does R of it a nanosecond.
  using Work = unsigned __int128;

  /// Which opportunities or tokens have been used.
  struct Used {
    std::uint64_t next = 0;          // the first opportunity that has not, counted from the epoch
    Instant at{};                    // the instant of the one before, or of the last use of tokens,
    Work left = 0;                   // and what is left of an opportunity, at that instant only;
    std::optional<__int128> tokens;  // or of the tokens, less than 0 by what rounding lends
  };

  /// How far the server comes.
  struct Progress {
    Instant at;  // when the work was done, or `until`
    Work left;   // what is not done then: less than a nanosecond's, if it was done
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
  Instant started_{};  // the packet begun last: when, how much, with what used before
  Work work_ = 0;
  Used used_before_;
  Used used_;
  Instant ended_{};     // when it has been sent
  Work left_over_ = 0;  // done before the next packet, if that follows at once
};

}  // namespace nagi::model
