// SPDX-License-Identifier: Apache-2.0
//
// Which constant rate brings most to the other end. What arrives rises with what is sent up to a
// point; beyond it, it stays (a full queue) or falls (contention for a medium). So the maximum is
// bracketed by golden sections (Kiefer, Proc. AMS 4(3), 1953). Of rates that bring as much the
// smallest is wanted: it fills no queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <optional>
#include <vector>

namespace nagi::applications {

/// Bits per second that were sent, and that arrived of them.
struct RateProbe {
  double sent_bps;
  double arrived_bps;
};

class RateSearch {
 public:
  /// Rates bring as much if what arrives differs by less. A bracket of that share of the largest
  /// rate ends the search.
  static constexpr double tolerance = 0.01;
  static constexpr std::uint64_t max_probes = 12;

  explicit RateSearch(double max_bps) : max_bps_(max_bps), above_(max_bps) {}

  /// The rate to try next; none: the search is over.
  [[nodiscard]] std::optional<double> next() const {
    if (probes_.empty()) return max_bps_;
    if (above_ - below_ <= tolerance * max_bps_) return std::nullopt;
    const double section = (above_ - below_) * (std::numbers::phi - 1);
    return lower_ ? below_ + section : above_ - section;
  }

  /// What came of next().
  void tell(double arrived_bps) {
    const RateProbe probe{next().value(), arrived_bps};
    probes_.push_back(probe);
    if (probes_.size() == 1) return;
    (lower_ ? higher_ : lower_) = probe;
    if (!higher_) return;
    // What is kept is where the next bracket has a section, too.
    if (lower_->arrived_bps >= higher_->arrived_bps * (1 - tolerance)) {
      above_ = higher_->sent_bps;
      higher_ = lower_;
      lower_.reset();
    } else {
      below_ = lower_->sent_bps;
      lower_ = higher_;
      higher_.reset();
    }
  }

  /// All that have been tried, in order.
  [[nodiscard]] const std::vector<RateProbe>& probes() const { return probes_; }

  /// The smallest rate that brought as much as any; 0: none brought anything.
  [[nodiscard]] double best_bps() const {
    double most = 0;
    for (const RateProbe& each : probes_) most = std::max(most, each.arrived_bps);
    double found = 0;
    for (const RateProbe& each : probes_) {
      const bool brings_most = most > 0 && each.arrived_bps >= most * (1 - tolerance);
      if (brings_most && (found == 0 || each.sent_bps < found)) found = each.sent_bps;
    }
    return found;
  }

 private:
  double max_bps_;
  double below_ = 0;
  double above_;
  std::optional<RateProbe> lower_;   // within the bracket, where there is one
  std::optional<RateProbe> higher_;  // the same
  std::vector<RateProbe> probes_;
};

}  // namespace nagi::applications
