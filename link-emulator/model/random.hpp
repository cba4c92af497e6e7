// SPDX-License-Identifier: Apache-2.0
//
// Random draws of the link model. They are counter-based: draw number i has the same value in
// software, in GNU Radio, in hardware and on every machine, independently of the order of draws.
//
// Generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Key: the 64-bit seed. Counter: draw index (64 bit), link (32 bit), direction and purpose.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace nagi::model {

enum class DirectionName : std::uint32_t { forward = 0, backward = 1 };
/// The use of a stream of draws. Streams with different purposes are independent.
enum class Purpose : std::uint32_t {
  loss = 0,
  loss_state = 1,
  jitter = 2,
  program = 3,
  jitter_repeat = 4,
  jitter_redraw = 5,
  corruption = 6,
  duplication = 7,
  reordering = 8,
  queue = 9,
  backoff = 10,
  rate_adaptation = 12
};

/// One independent stream of 64-bit draws.
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint32_t link, DirectionName direction, Purpose purpose)
      : Stream(seed, link, static_cast<std::uint32_t>(direction), purpose) {}
  /// Create a stream of a medium; `part` is the number of a station or of a pair of stations, below
  /// 2^16.
  Stream(std::uint64_t seed, std::uint32_t link, std::uint32_t part, Purpose purpose)
      : seed_(seed), link_(link), domain_((part << 16) | static_cast<std::uint32_t>(purpose)) {}

  /// Return draw number `index`, uniform over all 64-bit values.
  [[nodiscard]] std::uint64_t draw(std::uint64_t index) const;

 private:
  std::uint64_t seed_;
  std::uint32_t link_;
  std::uint32_t domain_;
};

/// An event of given probability, decided by comparing a 64-bit draw with a threshold.
class Chance {
 public:
  /// Create an event with a probability in [0, 1].
  explicit Chance(double probability);
  /// Return whether the event happens with this draw.
  [[nodiscard]] bool happens(std::uint64_t draw) const { return draw < threshold_; }
  /// Return whether the event happens with every draw.
  [[nodiscard]] bool is_certain() const { return threshold_ == certainty; }
  /// Return the threshold below which a draw makes the event happen, or 0 if it is certain.
  [[nodiscard]] std::uint64_t threshold() const { return static_cast<std::uint64_t>(threshold_); }

  /// Return the complementary event: that this event does not happen.
  [[nodiscard]] Chance complement() const { return with_threshold(certainty - threshold_); }
  /// Return the event that this event happens in all of `times` independent trials. The function
  /// uses integer arithmetic; its error is below times x 2^-63.
  [[nodiscard]] Chance times(std::uint64_t times) const;

 private:
  using Wide = unsigned __int128;
  static constexpr Wide certainty = Wide{1} << 64;
  static Chance with_threshold(Wide threshold) {
    Chance chance(0.0);
    chance.threshold_ = threshold;
    return chance;
  }

  Wide threshold_;  // probability x 2^64; 2^64 if the event is certain
};

/// Return -ln(u) for u = (draw + 1) / 2^64, as a fixed-point number with 40 fractional bits. The
/// function uses only integer arithmetic (binary logarithm by repeated squaring), so all
/// implementations agree. Its error is below 2^-22.
std::uint64_t exponential_q40(std::uint64_t draw);

/// Return an exponentially distributed interval with the given mean in picoseconds, rounded to 1
/// ns.
Duration exponential(std::uint64_t draw, std::uint64_t mean_picoseconds);

/// Return a standard normal deviate: the quantile of the normal distribution at draw / 2^64, by
/// Wichura's algorithm AS 241 (1988). The function uses only operations that IEEE 754 defines to
/// the last bit, and exponential_q40 for the logarithm. Its error is below 10^-6.
double standard_normal(std::uint64_t draw);

}  // namespace nagi::model
