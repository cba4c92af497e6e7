// SPDX-License-Identifier: Apache-2.0
//
// The air of a chain in ns-3: which frames overlap, whether a receiver can decode a frame, and the
// outcome of each frame.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ns3/core-module.h"
#include "ns3/network-module.h"

namespace ns3_chain {

using nlohmann::json;

constexpr double light_m_s = 299'792'458;
// Time after the end of a frame within which its response begins, if there is one (SIFS is 10 us).
constexpr int response_begins_us = 15;

inline double linear(double db) { return std::pow(10, db / 10); }

/// Path loss as in nagi's `reach: {by: sinr}`.
struct Radio {
  double spacing_m, tx_power_dbm, exponent, reference_loss_db, carrier_sense_dbm, noise_dbm;
  std::optional<double> capture_db;  // without a value, ns-3's error model decides
  bool has_delay;

  [[nodiscard]] double distance(std::size_t one, std::size_t other) const {
    return spacing_m * std::abs(static_cast<double>(one) - static_cast<double>(other));
  }
  [[nodiscard]] double power_dbm(std::size_t sender, std::size_t receiver) const {
    return tx_power_dbm - reference_loss_db -
           10 * exponent * std::log10(distance(sender, receiver));
  }
  [[nodiscard]] bool senses(std::size_t sender, std::size_t receiver) const {
    return power_dbm(sender, receiver) >= carrier_sense_dbm;
  }
  [[nodiscard]] ns3::Time delay(std::size_t sender, std::size_t receiver) const {
    return has_delay ? ns3::Seconds(distance(sender, receiver) / light_m_s) : ns3::Time();
  }
};

struct Frame {
  std::size_t sender = 0;
  std::size_t receiver = 0;
  std::string kind;
  std::uint64_t packet = 0;  // ns-3's number of the packet
  ns3::Time start, end;
  bool was_received = false;
};

/// All frames on the air. Receivers with a capture threshold use them to decide on reception. The
/// class also counts the outcome of each frame, in the terms of model/medium/air_frame.hpp.
class Air {
 public:
  explicit Air(const Radio& radio) : radio_(radio) {}

  void begin(const Frame& frame) {
    const ns3::Time horizon = ns3::Simulator::Now() - ns3::MilliSeconds(30);
    while (!frames_.empty() && frames_.front().end < horizon) {
      frames_.pop_front();
      ++dropped_;
    }
    frames_.push_back(frame);
    const std::uint64_t number = dropped_ + frames_.size() - 1;
    ns3::Simulator::Schedule(frame.end + ns3::MicroSeconds(response_begins_us) - frame.start,
                             [this, number] { count_outcome(number); });
  }
  void received(std::size_t receiver, std::uint64_t packet) {
    if (Frame* frame = arriving(receiver, packet)) frame->was_received = true;
  }
  /// Return whether a frame that has just ended at a station is lost, because its lowest ratio to
  /// noise and interference is below the capture threshold.
  [[nodiscard]] bool is_drowned(std::size_t receiver, std::uint64_t packet) {
    const Frame* frame = arriving_at(receiver, packet);
    if (frame == nullptr || !radio_.capture_db) return false;
    double worst = 0;
    for (const Frame& at_begin : frames_) {  // interference rises only where a frame begins
      if (!overlap(*frame, at_begin, receiver)) continue;
      const ns3::Time at = std::max(arrives(at_begin, receiver), arrives(*frame, receiver));
      double others = 0;
      for (const Frame& other : frames_) {
        if (&other == frame || other.sender == receiver || arrives(other, receiver) > at) continue;
        if (leaves(other, receiver) <= at) continue;
        others += linear(radio_.power_dbm(other.sender, receiver));
      }
      worst = std::max(worst, others);
    }
    const double power = linear(radio_.power_dbm(frame->sender, receiver));
    return power < linear(*radio_.capture_db) * (linear(radio_.noise_dbm) + worst);
  }
  void measure_from(ns3::Time start) { measured_from_ = start; }
  [[nodiscard]] const json& outcomes() const { return outcomes_; }

 private:
  [[nodiscard]] ns3::Time arrives(const Frame& frame, std::size_t at) const {
    return frame.start + radio_.delay(frame.sender, at);
  }
  [[nodiscard]] ns3::Time leaves(const Frame& frame, std::size_t at) const {
    return frame.end + radio_.delay(frame.sender, at);
  }
  [[nodiscard]] bool overlap(const Frame& frame, const Frame& other, std::size_t at) const {
    return &other != &frame && other.sender != frame.sender && other.sender != at &&
           arrives(other, at) < leaves(frame, at) && leaves(other, at) > arrives(frame, at);
  }
  /// Return the frame with `packet` whose last bit arrives at `receiver` now, or nullptr.
  [[nodiscard]] Frame* arriving_at(std::size_t receiver, std::uint64_t packet) {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (frame->packet == packet && frame->sender != receiver &&
          leaves(*frame, receiver) == ns3::Simulator::Now()) {
        return &*frame;
      }
    }
    return nullptr;
  }
  [[nodiscard]] Frame* arriving(std::size_t receiver, std::uint64_t packet) {
    Frame* frame = arriving_at(receiver, packet);
    return frame != nullptr && frame->receiver == receiver ? frame : nullptr;
  }
  void count_outcome(std::uint64_t number) {
    const Frame& frame = frames_.at(number - dropped_);
    if (frame.start < measured_from_) return;
    const std::string hop = std::to_string(frame.sender) + ">" + std::to_string(frame.receiver);
    json& count = outcomes_[hop][frame.kind][outcome_of(frame)];
    count = count.is_null() ? 1 : count.get<std::uint64_t>() + 1;
  }
  [[nodiscard]] std::string outcome_of(const Frame& frame) const {
    if (frame.was_received) {
      if (frame.kind != "RTS") return "received";
      for (const Frame& other : frames_) {
        if (other.kind == "CTS" && other.sender == frame.receiver && other.start > frame.end) {
          return "received";
        }
      }
      return "not_answered";
    }
    const Frame* strongest = nullptr;
    for (const Frame& other : frames_) {
      if (other.sender == frame.receiver && other.start < frame.end && other.end > frame.start) {
        return "receiver_busy";
      }
      if (!overlap(frame, other, frame.receiver)) continue;
      if (strongest == nullptr || radio_.power_dbm(other.sender, frame.receiver) >
                                      radio_.power_dbm(strongest->sender, frame.receiver)) {
        strongest = &other;
      }
    }
    if (strongest == nullptr) return "out_of_reach";
    return radio_.senses(strongest->sender, frame.sender) ? "collided" : "hidden_terminal";
  }

  Radio radio_;
  std::deque<Frame> frames_;
  std::uint64_t dropped_ = 0;
  ns3::Time measured_from_;
  json outcomes_ = json::object();
};

/// An error model by which a frame is received if its ratio to noise and interference is never
/// below a threshold.
class CaptureThreshold : public ns3::ErrorModel {
 public:
  CaptureThreshold(Air& air, std::size_t station) : air_(air), station_(station) {}

 private:
  bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override {
    return air_.is_drowned(station_, packet->GetUid());
  }
  void DoReset() override {}
  Air& air_;
  std::size_t station_;
};

}  // namespace ns3_chain
