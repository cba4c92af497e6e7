// SPDX-License-Identifier: Apache-2.0
//
// A token bucket: in every interval tokens are added until the bucket is full; further tokens are
// lost. Each token permits a number of bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nagi::applications {

class TokenBucket {
 public:
  struct Settings {
    std::uint64_t depth;        ///< maximum number of tokens
    std::uint64_t tokens;       ///< tokens added per interval
    std::uint64_t interval_ns;  ///< length of an interval, above 0
  };

  /// Create a full bucket; the first interval begins at `start_ns`.
  TokenBucket(const Settings& settings, std::int64_t start_ns)
      : settings_(settings),
        level_(settings.depth),
        next_ns_(start_ns + static_cast<std::int64_t>(settings.interval_ns)) {}

  /// Add the tokens of all intervals until `now_ns`.
  void advance(std::int64_t now_ns) {
    if (now_ns < next_ns_) return;
    const auto interval = static_cast<std::int64_t>(settings_.interval_ns);
    const std::int64_t intervals = (now_ns - next_ns_) / interval + 1;
    next_ns_ += intervals * interval;
    const std::uint64_t new_tokens = static_cast<std::uint64_t>(intervals) * settings_.tokens;
    const std::uint64_t added_tokens = std::min(new_tokens, settings_.depth - level_);
    level_ += added_tokens;
    lost_ += new_tokens - added_tokens;
  }

  /// Take up to `max_tokens` tokens, and return the number of tokens taken.
  std::uint64_t take(std::uint64_t max_tokens) {
    const std::uint64_t tokens = std::min(max_tokens, level_);
    level_ -= tokens;
    return tokens;
  }

  /// Return the number of tokens in the bucket.
  [[nodiscard]] std::uint64_t level() const { return level_; }
  /// Return the number of tokens that were lost because the bucket was full.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// Return the time of the next tokens.
  [[nodiscard]] std::int64_t next_ns() const { return next_ns_; }

 private:
  Settings settings_;
  std::uint64_t level_;
  std::uint64_t lost_ = 0;
  std::int64_t next_ns_;
};

}  // namespace nagi::applications
