// SPDX-License-Identifier: Apache-2.0
//
// Computes count, mean, extremes and quantiles of many durations in bounded memory. Extremes and
// mean are exact. Quantiles come from logarithmic buckets, 128 per octave, as in HdrHistogram, and
// have errors of at most 0.8 %. The first 16 values are stored as they are. With more values, an
// octave takes 1 KiB, or 8 bytes if no value is in it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace nagi::captures {

class Distribution {
 public:
  /// Count one value. A value below zero counts as zero.
  void add(std::int64_t value) {
    value = std::max<std::int64_t>(value, 0);
    ++count_;
    sum_ += static_cast<double>(value);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    if (octaves_.empty()) {
      if (few_.size() < max_few) {
        few_.push_back(value);
        return;
      }
      for (const std::int64_t each : std::exchange(few_, {})) put(each);
    }
    put(value);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The extremes, the mean and the quantiles are NaN without values.
  [[nodiscard]] double min() const { return count_ == 0 ? nan : static_cast<double>(min_); }
  [[nodiscard]] double max() const { return count_ == 0 ? nan : static_cast<double>(max_); }
  [[nodiscard]] double mean() const {
    return count_ == 0 ? nan : sum_ / static_cast<double>(count_);
  }
  /// Return the smallest value x for which at least a share of `share` (0 to 1) of all values is at
  /// most x. The values in a bucket are assumed to be evenly distributed.
  [[nodiscard]] double quantile(double share) const {
    if (count_ == 0) return nan;
    if (octaves_.empty()) {
      Distribution buckets;
      for (const std::int64_t each : few_) buckets.put(each);
      buckets.count_ = count_;
      buckets.min_ = min_;
      buckets.max_ = max_;
      return buckets.quantile(share);
    }
    const auto rank = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
    std::uint64_t passed = 0;
    for (unsigned octave = 0; octave < octaves_.size(); ++octave) {
      if (!octaves_[octave]) continue;
      for (std::size_t i = 0; i < per_octave; ++i) {
        const std::uint64_t in_bucket = (*octaves_[octave])[i];
        if (passed + in_bucket < rank) {
          passed += in_bucket;
          continue;
        }
        const auto width = static_cast<double>(std::uint64_t{1} << shift_of(octave));
        const auto bottom = static_cast<double>(octave == 0 ? i : per_octave + i) * width;
        const double position =
            (static_cast<double>(rank - passed) - 0.5) / static_cast<double>(in_bucket);
        return std::clamp(bottom + std::floor(position * width), static_cast<double>(min_),
                          static_cast<double>(max_));
      }
    }
    return static_cast<double>(max_);
  }

 private:
  static constexpr unsigned bits = 7;
  static constexpr std::size_t per_octave = 1U << bits;
  static constexpr std::size_t max_few = 16;
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  using Octave = std::array<std::uint64_t, per_octave>;

  // Octave 0 contains all values below 128, so its buckets have width 1.
  static unsigned octave_of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    return width <= bits ? 0 : width - bits;
  }
  static unsigned shift_of(unsigned octave) { return octave == 0 ? 0 : octave - 1; }

  void put(std::int64_t value) {
    const auto positive = static_cast<std::uint64_t>(value);
    const unsigned octave = octave_of(positive);
    if (octave >= octaves_.size()) octaves_.resize(octave + 1);
    if (!octaves_[octave]) octaves_[octave] = std::make_unique<Octave>();
    ++(*octaves_[octave])[(positive >> shift_of(octave)) % per_octave];
  }

  std::vector<std::int64_t> few_;
  std::vector<std::unique_ptr<Octave>> octaves_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::int64_t min_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_ = 0;
};

}  // namespace nagi::captures
