// SPDX-License-Identifier: Apache-2.0
//
// Waking up at an instant, to the microsecond. A timer wakes a process tens of microseconds late,
// so it is set early, by as much as it has lately been late, and the rest is waited awake.
//
// Who never sleeps is put to sleep: under SCHED_FIFO, kernels before 6.12 take the processor away
// for tens of milliseconds from a process that leaves others less than a twentieth of it
// (sched_rt_runtime_us in sched(7)); newer ones, when others want it. So a sixteenth of the time is
// slept, a little at a time: at once where the kernel would not ask, else when there is nothing to
// do.
//
// Frames that are served one by one cost several times what they cost together, and whoever waits
// for the same processors waits longer. So who is busy with few frames at a time for more than two
// thirds of the time pauses until there are more.
#pragma once

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "io/clock.hpp"
#include "io/descriptor.hpp"

namespace nagi::runtime {

class Alarm {
 public:
  /// `max_awake_ns`: how long at most to wait awake for one instant; 0 for never.
  /// `at_once`: whether to nap however much there is to do.
  Alarm(std::int64_t max_awake_ns, bool at_once)
      : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        max_awake_ns_(max_awake_ns),
        at_once_(at_once),
        early_ns_(max_awake_ns / 2),
        fall_asleep_(io::read_clock(CLOCK_MONOTONIC)) {
    if (timer_.get() < 0) io::throw_errno("cannot make a timer");
  }
  [[nodiscard]] int descriptor() const { return timer_.get(); }

  /// Prepares to wait for an instant (CLOCK_MONOTONIC, ns), or for nothing in particular. `frames`:
  /// how many have been served since the last time. Returns false if the instant is so near that
  /// the caller had better not sleep.
  bool set(std::optional<std::int64_t> instant, std::size_t frames) {
    const std::int64_t now = pay_sleep(io::read_clock(CLOCK_MONOTONIC), frames);
    // More may have come meanwhile, and to look is cheaper than to set the timer.
    if (frames > 0) return false;
    std::int64_t at = never;
    if (instant) {
      const std::int64_t left = *instant - now;
      // To set the timer and be woken takes longer than a short wait.
      if (left <= std::min(early_ns_ + setting_ns, max_awake_ns_)) return false;
      at = *instant - early_ns_;
    }
    if (at == set_for_) return true;
    set_for_ = at;
    itimerspec when{};
    when.it_value.tv_sec = at / 1'000'000'000;
    when.it_value.tv_nsec = at % 1'000'000'000;
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    return true;
  }

  /// The caller has slept since set() returned true.
  void awake() { slept(io::read_clock(CLOCK_MONOTONIC)); }

  /// The descriptor has become readable.
  void gone_off() {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) <= 0) return;
    const std::int64_t late = io::read_clock(CLOCK_MONOTONIC) - set_for_;
    set_for_ = never;
    // Quickly up, slowly down: early enough for nearly all wakings, the rare long ones aside.
    const std::int64_t off = late - early_ns_;
    early_ns_ += off > 0 ? off / 4 : off / 32;
    early_ns_ = std::clamp<std::int64_t>(early_ns_, 0, max_awake_ns_);
  }

 private:
  static constexpr std::int64_t never = 0;  // as timerfd_settime(2) has it
  static constexpr std::int64_t setting_ns = 10'000;
  static constexpr std::int64_t awake_to_asleep = 15;
  static constexpr std::int64_t nap_ns = 100'000;
  static constexpr std::int64_t busy_to_pause = 2;
  static constexpr std::int64_t pause_ns = 20'000;
  static constexpr std::size_t many_frames = 16;

  /// Sleeps if that is due. Returns what time it is then.
  std::int64_t pay_sleep(std::int64_t now, std::size_t frames) {
    const std::int64_t awake = now - fall_asleep_;
    fall_asleep_ = now;
    sleep_owed_ += awake / awake_to_asleep;
    if (frames == 0) {
      pause_owed_ = std::max(pause_owed_ - awake, -pause_ns);
    } else if (frames < many_frames) {
      pause_owed_ += awake / busy_to_pause;
    }
    if (sleep_owed_ >= nap_ns && (frames == 0 || at_once_)) return sleep(nap_ns);
    return pause_owed_ >= pause_ns ? sleep(pause_ns) : now;
  }
  std::int64_t sleep(std::int64_t ns) {
    const timespec span{0, ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
    return slept(io::read_clock(CLOCK_MONOTONIC));
  }
  std::int64_t slept(std::int64_t now) {
    const std::int64_t asleep = now - fall_asleep_;
    fall_asleep_ = now;
    sleep_owed_ = std::max(sleep_owed_ - asleep, -nap_ns);
    pause_owed_ = std::max(pause_owed_ - asleep, -pause_ns);
    return now;
  }

  io::Descriptor timer_;
  std::int64_t max_awake_ns_;
  bool at_once_;
  std::int64_t early_ns_;
  std::int64_t set_for_ = never;
  std::int64_t fall_asleep_;  // the last time, or when that was last accounted for
  std::int64_t sleep_owed_ = 0;
  std::int64_t pause_owed_ = 0;
};

}  // namespace nagi::runtime
