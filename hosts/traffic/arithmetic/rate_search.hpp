// SPDX-License-Identifier: Apache-2.0
//
// Search for the largest constant rate that a path carries. The path carries a rate if the share of
// packets that arrive is as large as at lower rates. A higher rate fills a queue, or takes the
// medium from packets ahead. The search doubles the rate until the share falls, and then bisects.
// So trains are never much too fast, and their queues drain soon. A train with a slightly lower
// share is repeated once. A longer train confirms the result; otherwise the search continues below
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace nagi::applications {

/// A train of packets: the rates at which it was sent and arrived, in bit/s, and its length.
struct RateProbe {
  double sent_bps;
  double arrived_bps;
  double packets;

  [[nodiscard]] double share() const { return std::min(arrived_bps / sent_bps, 1.0); }
};

class RateSearch {
 public:
  /// Two shares count as equal if they differ by less than this, or by less than a standard error.
  static constexpr double tolerance = 0.05;
  /// The search ends when the width of the bracket is this fraction of its lower end.
  static constexpr double resolution = 0.02;
  static constexpr std::uint64_t max_probes = 18;

  /// Begin at `first_bps`, a rate that the path should carry.
  RateSearch(double first_bps, double max_bps)
      : first_bps_(std::min(first_bps, max_bps)), max_bps_(max_bps) {}

  /// Return the rate to probe next, or nothing at the end of the search.
  [[nodiscard]] std::optional<double> next() const {
    if (probes_.size() == max_probes) return std::nullopt;
    if (probes_.empty()) return first_bps_;
    if (!carried_bps_) return probes_.back().sent_bps / 2;
    if (*carried_bps_ == max_bps_) return std::nullopt;
    if (must_repeat_) return probes_.back().sent_bps;
    if (!above_bps_) return std::min(*carried_bps_ * 2, max_bps_);
    if (is_found()) return is_confirmed_ ? std::nullopt : carried_bps_;
    return std::sqrt(*carried_bps_ * *above_bps_);
  }

  /// Return whether next() is the result, which a longer train must confirm.
  [[nodiscard]] bool is_found() const {
    return carried_bps_ && above_bps_ && *above_bps_ <= *carried_bps_ * (1 + resolution);
  }

  /// Add the result of a train of `packets` packets at the rate next().
  void tell(double arrived_bps, double packets) {
    const RateProbe probe{next().value(), arrived_bps, packets};
    if (carried_bps_) {
      compare(probe);
    } else {
      carried_ = Trains{probe};
      low_share_ = carried_.share();
      // Behind a full queue half the rate has twice the share.
      constexpr double about_as_large = 0.75;
      if (!probes_.empty() && probes_.back().share() >= probe.share() * about_as_large) {
        add(probes_.back());
      } else {
        if (!probes_.empty()) above_bps_ = probes_.back().sent_bps;
        if (probe.share() >= 1 - tolerance) carried_bps_ = probe.sent_bps;
      }
    }
    probes_.push_back(probe);
  }

  /// Return all probes in order.
  [[nodiscard]] const std::vector<RateProbe>& probes() const { return probes_; }

  /// What arrived of the largest rate that was carried, as if the path lost nothing of lower ones;
  /// a little less if there was no time to confirm it. The lowest of those that brought most, if
  /// none was found that is low enough. 0: nothing arrived.
  [[nodiscard]] double best_bps() const {
    const auto most = std::ranges::max_element(probes_, {}, &RateProbe::arrived_bps);
    if (most == probes_.end() || most->arrived_bps == 0) return 0;
    if (!carried_bps_) {
      const double enough = most->arrived_bps * (1 - tolerance);
      double lowest = most->sent_bps;
      for (const RateProbe& each : probes_) {
        if (each.arrived_bps >= enough) lowest = std::min(lowest, each.sent_bps);
      }
      return lowest;
    }
    const double best = *carried_bps_ * share_of_low_;
    return above_bps_ && !is_confirmed_ ? best * step_down : best;
  }

 private:
  static constexpr double step_down = 0.95;

  /// Packets of several trains.
  struct Trains {
    double arrived = 0;
    double sent = 0;

    Trains() = default;
    explicit Trains(const RateProbe& probe)
        : arrived(probe.share() * probe.packets), sent(probe.packets) {}
    [[nodiscard]] double share() const { return arrived / sent; }
    void add(const Trains& more) {
      arrived += more.arrived;
      sent += more.sent;
    }
  };

  void compare(const RateProbe& probe) {
    constexpr double a_little_less = 0.85;
    if (is_as_large(probe)) {
      is_confirmed_ = is_found();
      add(probe);
    } else if (is_found()) {
      above_bps_ = carried_bps_;
      *carried_bps_ *= step_down;
    } else if (!must_repeat_ && probe.share() >= carried_.share() * a_little_less) {
      must_repeat_ = true;
      return;
    } else {
      above_bps_ = probe.sent_bps;
    }
    must_repeat_ = false;
  }
  /// Return whether the share of a train is as large as that of the carried trains.
  [[nodiscard]] bool is_as_large(const RateProbe& probe) const {
    // Of few packets of which none was lost a part may be lost all the same (Agresti and Coull,
    // The American Statistician 52(2), 1998).
    const double share = (carried_.arrived + 2) / (carried_.sent + 4);
    const double error = std::sqrt(share * (1 - share) * (1 / probe.packets + 1 / carried_.sent));
    return probe.share() >= carried_.share() - std::max(tolerance, error);
  }
  void add(const RateProbe& probe) {
    if (low_share_ > 0) share_of_low_ = std::min(probe.share() / low_share_, 1.0);
    carried_.add(Trains{probe});
    carried_bps_ = probe.sent_bps;
    if (!above_bps_) low_share_ = carried_.share();
  }

  double first_bps_;
  double max_bps_;
  std::optional<double> carried_bps_;  // the largest rate known to be carried,
  std::optional<double> above_bps_;    // and the smallest that is not
  Trains carried_;                     // all that were carried, and the lowest
  double low_share_ = 0;               // of those far below the largest rate
  double share_of_low_ = 1;            // the last one's that was carried, as a part of that
  bool must_repeat_ = false;           // the last train
  bool is_confirmed_ = false;
  std::vector<RateProbe> probes_;
};

}  // namespace nagi::applications
