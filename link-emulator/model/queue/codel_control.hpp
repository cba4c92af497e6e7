// SPDX-License-Identifier: Apache-2.0
//
// CoDel's control law (RFC 8289, section 5) for one queue. Once the sojourn time has been above
// `target` for an `interval`, packets are dropped or marked until the sojourn time falls below
// `target`. The intervals between drops shrink with the square root of the number of drops.
//
// With the style `linux` (include/net/codel_impl.h), the unit of time is 1,024 ns, one Newton step
// per drop approximates the square root, and one call of dequeue() drops at most 256 packets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "model/queue/queue.hpp"
#include "model/queue/style.hpp"

namespace nagi::model {

struct CoDelParameters {
  Style style;
  Duration target;
  Duration interval;
  bool ecn;
  Bytes packet;  // MAXPACKET: the control drops only while more bytes than this wait

  template <class Config>
  explicit CoDelParameters(const Config& config)
      : style(config.style),
        target(rounded(config.target)),
        interval(rounded(config.interval)),
        ecn(config.ecn),
        packet(config.packet) {}

  [[nodiscard]] bool is_linux() const { return style == Style::as_linux; }
  /// Return the time in the resolution of the style.
  [[nodiscard]] Instant rounded(Instant at) const {
    return Instant{rounded(at.time_since_epoch())};
  }
  [[nodiscard]] Duration rounded(Duration time) const {
    return is_linux() ? time / linux_tick * linux_tick : time;
  }

  static constexpr Duration linux_tick{1024};
};

/// The state of the control law for one queue.
class CoDelControl {
 public:
  /// Return the next packet to send, or nothing if the queue is or becomes empty. `take()` removes
  /// and returns the first packet of the queue, `backlog()` returns the bytes that wait.
  template <class Take, class Backlog>
  std::optional<Packet> dequeue(const CoDelParameters& parameters, Instant at, QueueEvents& events,
                                Take take, Backlog backlog) {
    const Instant now = parameters.rounded(at);
    const auto drop = [&events](const Packet& packet) {
      events.drops.push_back({packet, Fate::aqm_drop});
    };
    bool may_drop = false;
    const auto next = [&]() -> std::optional<Packet> {
      const std::optional<Waiting> first = take();
      may_drop =
          first && is_too_long(parameters, now, now - parameters.rounded(first->since), backlog());
      if (!first) {
        above_since_.reset();
        return std::nullopt;
      }
      return first->packet;
    };
    std::optional<Packet> packet = next();
    if (!packet) {
      is_dropping_ = false;
      return packet;
    }
    if (is_dropping_) {
      if (!may_drop) is_dropping_ = false;
      for (int drops = 0; is_dropping_ && now >= next_drop_; ++drops) {
        if (parameters.is_linux() && drops == linux_max_drops) {
          next_drop_ = control_law(parameters, now);
          break;
        }
        ++count_;
        approach_root();
        if (parameters.ecn && try_to_mark(*packet, events)) {
          next_drop_ = control_law(parameters, next_drop_);
          return packet;
        }
        drop(*packet);
        packet = next();
        if (may_drop) {
          next_drop_ = control_law(parameters, next_drop_);
        } else {
          is_dropping_ = false;
        }
      }
    } else if (may_drop) {
      if (!parameters.ecn || !try_to_mark(*packet, events)) {
        drop(*packet);
        packet = next();
      }
      is_dropping_ = true;
      // After a short pause the control resumes with the drop rate that controlled the queue
      // before.
      const std::uint32_t previous_drops = count_ - last_count_;
      if (previous_drops > 1 && now - next_drop_ < 16 * parameters.interval) {
        count_ = previous_drops;
        approach_root();
      } else {
        count_ = 1;
        inverse_root_ = 0xFFFF;
      }
      next_drop_ = control_law(parameters, now);
      last_count_ = count_;
    }
    return packet;
  }

  /// Add to the count packets that were dropped from this queue for other reasons.
  void add_drops(std::uint32_t drops) { count_ += drops; }

 private:
  static constexpr int linux_max_drops = 256;

  [[nodiscard]] Instant control_law(const CoDelParameters& parameters, Instant from) const {
    if (!parameters.is_linux()) {
      const double interval = static_cast<double>(parameters.interval.count());
      return from + Duration{std::llround(interval / std::sqrt(static_cast<double>(count_)))};
    }
    const auto interval =
        static_cast<std::uint64_t>(parameters.interval / CoDelParameters::linux_tick);
    const std::uint64_t ticks = interval * (std::uint64_t{inverse_root_} << 16) >> 32;
    return from + static_cast<std::int64_t>(std::max<std::uint64_t>(ticks, 1)) *
                      CoDelParameters::linux_tick;
  }
  /// Improve inverse_root_ by the Newton step of Linux towards 1 / sqrt(count_); Linux stores 16
  /// bits of it.
  void approach_root() {
    const std::uint64_t root = std::uint64_t{inverse_root_} << 16;
    const std::uint64_t value = (std::uint64_t{3} << 32) - count_ * (root * root >> 32);
    inverse_root_ = static_cast<std::uint16_t>(((value >> 2) * root >> 31) >> 16);
  }
  /// Return whether the sojourn time has been above the target for an interval.
  bool is_too_long(const CoDelParameters& parameters, Instant now, Duration sojourn,
                   Bytes backlog) {
    if (sojourn < parameters.target || backlog <= parameters.packet) {
      above_since_.reset();
      return false;
    }
    if (!above_since_) {
      above_since_ = now;
      return false;
    }
    const Duration above = now - *above_since_;
    return parameters.is_linux() ? above > parameters.interval : above >= parameters.interval;
  }

  std::optional<Instant> above_since_;
  bool is_dropping_ = false;
  Instant next_drop_{};
  std::uint32_t count_ = 0;  // number of drops since dropping began
  std::uint32_t last_count_ = 0;
  // In units of 2^-16. Linux starts with 0, and resets this when dropping begins.
  std::uint16_t inverse_root_ = 0;
};

}  // namespace nagi::model
