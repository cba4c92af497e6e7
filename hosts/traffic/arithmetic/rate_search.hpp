// SPDX-License-Identifier: Apache-2.0
//
// Search for the largest constant rate that a path carries. The path carries a rate if the share of
// packets that arrive is as large as at lower rates. A higher rate fills a queue, or, on a shared
// medium, takes time on the medium from earlier packets. The search sends trains of packets. It
// doubles the rate until the share of arriving packets falls, and then bisects. So no train is much
// too fast, and the queue that a train fills drains soon. A train with a slightly lower share is
// repeated once. At the end, a longer train confirms the rate. If it does not, the search continues
// at lower rates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace nagi::applications {

/// The result of a train of packets.
struct RateProbe {
  double sent_bps;     ///< rate at which the train was sent
  double arrived_bps;  ///< rate at which the train arrived
  double packets;      ///< number of packets sent

  /// Return the share of packets that arrived.
  [[nodiscard]] double share() const { return std::min(arrived_bps / sent_bps, 1.0); }
};

class RateSearch {
 public:
  /// Two shares count as equal if they differ by less than this, or by less than a standard error.
  static constexpr double tolerance = 0.05;
  /// The search ends when the width of the bracket is this fraction of its lower end.
  static constexpr double resolution = 0.02;
  static constexpr std::uint64_t max_probes = 18;

  /// Begin the search at `first_bps`, a rate that the path probably carries. Rates never exceed
  /// `max_bps`.
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

  /// Return whether the rate is found. If it is not confirmed, next() returns it, for a longer
  /// train.
  [[nodiscard]] bool is_found() const {
    return carried_bps_ && above_bps_ && *above_bps_ <= *carried_bps_ * (1 + resolution);
  }

  /// Add the result of a train of `packets` packets, which was sent at the rate next().
  void add_result(double arrived_bps, double packets) {
    const RateProbe probe{next().value(), arrived_bps, packets};
    if (carried_bps_) {
      compare(probe);
    } else {
      carried_ = Trains{probe};
      low_share_ = carried_.share();
      // If the faster train was too fast, half its rate has about twice its share.
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

  /// Return the best rate for sending; 0 if no packet arrived.
  ///
  /// It is the largest rate that the path carried, times the share of its packets that arrived,
  /// compared with the share at low rates. It is a little less if there was no time to confirm the
  /// rate. If the path carried no rate, return the lowest rate at which about as much arrived as at
  /// any other rate.
  [[nodiscard]] double best_bps() const {
    const auto best_probe = std::ranges::max_element(probes_, {}, &RateProbe::arrived_bps);
    if (best_probe == probes_.end() || best_probe->arrived_bps == 0) return 0;
    if (!carried_bps_) {
      const double enough_bps = best_probe->arrived_bps * (1 - tolerance);
      double lowest_bps = best_probe->sent_bps;
      for (const RateProbe& probe : probes_) {
        if (probe.arrived_bps >= enough_bps) lowest_bps = std::min(lowest_bps, probe.sent_bps);
      }
      return lowest_bps;
    }
    const double best = *carried_bps_ * share_of_low_;
    return above_bps_ && !is_confirmed_ ? best * step_down : best;
  }

 private:
  static constexpr double step_down = 0.95;

  /// The numbers of packets in several trains.
  struct Trains {
    double arrived = 0;
    double sent = 0;

    Trains() = default;
    explicit Trains(const RateProbe& probe)
        : arrived(probe.share() * probe.packets), sent(probe.packets) {}
    [[nodiscard]] double share() const { return arrived / sent; }
    void add(const Trains& other) {
      arrived += other.arrived;
      sent += other.sent;
    }
  };

  /// Narrow the bracket by the result of a train.
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
    // The share is estimated with two more arrivals and two more losses (Agresti and Coull, The
    // American Statistician 52(2), 1998), because few packets without a loss do not prove that the
    // path loses none.
    const double share = (carried_.arrived + 2) / (carried_.sent + 4);
    const double error = std::sqrt(share * (1 - share) * (1 / probe.packets + 1 / carried_.sent));
    return probe.share() >= carried_.share() - std::max(tolerance, error);
  }
  /// Add a train to the trains that the path carried.
  void add(const RateProbe& probe) {
    if (low_share_ > 0) share_of_low_ = std::min(probe.share() / low_share_, 1.0);
    carried_.add(Trains{probe});
    carried_bps_ = probe.sent_bps;
    if (!above_bps_) low_share_ = carried_.share();
  }

  double first_bps_;
  double max_bps_;
  std::optional<double> carried_bps_;  // largest rate that the path carries, as known so far
  std::optional<double> above_bps_;    // smallest rate that the path does not carry
  Trains carried_;                     // trains that were carried, and the train at the lowest rate
  double low_share_ = 0;               // share of arrivals at rates far below the largest rate
  double share_of_low_ = 1;            // share of the last carried train, divided by low_share_
  bool must_repeat_ = false;           // the last train must be repeated
  bool is_confirmed_ = false;          // a longer train has confirmed carried_bps_
  std::vector<RateProbe> probes_;
};

}  // namespace nagi::applications
