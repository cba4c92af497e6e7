// SPDX-License-Identifier: Apache-2.0
//
// A histogram of durations in logarithmic buckets, 32 per octave. Quantiles have an error of 3 %,
// the memory is constant, and a value costs a few instructions. HdrHistogram has similar buckets.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace nagi::runtime {

class Histogram {
 public:
  /// Add a value; negative values count as zero.
  void add(std::int64_t value) {
    const auto positive = static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
    const std::size_t bucket = bucket_of(positive);
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    ++counts_[bucket];
    ++count_;
    maximum_ = std::max(maximum_, positive);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t maximum() const { return maximum_; }

  /// Return the quantile: the smallest upper limit of a bucket that at least `fraction` of the
  /// values do not exceed, or 0 if there are no values.
  [[nodiscard]] std::uint64_t quantile(double fraction) const {
    const auto rank = static_cast<std::uint64_t>(fraction * static_cast<double>(count_));
    std::uint64_t passed = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      passed += counts_[bucket];
      if (passed > rank || passed == count_) return std::min(upper(bucket), maximum_);
    }
    return 0;
  }

  /// Return the non-empty buckets, each as its largest value and its number of values.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> filled;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      if (counts_[bucket] != 0) filled.emplace_back(upper(bucket), counts_[bucket]);
    }
    return filled;
  }

 private:
  static constexpr unsigned bits = 5;
  static constexpr std::uint64_t buckets_per_octave = 1U << bits;

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < buckets_per_octave) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 1 - bits;
    return shift * buckets_per_octave + (value >> shift);
  }
  static std::uint64_t upper(std::size_t bucket) {
    if (bucket < 2 * buckets_per_octave) return bucket;
    const std::size_t shift = bucket / buckets_per_octave - 1;
    return ((bucket - shift * buckets_per_octave + 1) << shift) - 1;
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t maximum_ = 0;
};

}  // namespace nagi::runtime
