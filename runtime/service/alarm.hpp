// SPDX-License-Identifier: Apache-2.0
//
// Waking up at an instant, with an accuracy of microseconds. A timer wakes a process tens of
// microseconds late. So the alarm sets the timer earlier, by the lateness of recent wake-ups, and
// busy-waits for the remaining time.
//
// A process must not busy-wait all the time. Under SCHED_FIFO, kernels before 6.12 stop a process
// for tens of milliseconds if it leaves less than a twentieth of the processor to others
// (sched_rt_runtime_us in sched(7)); newer kernels stop it only if others want to run. So the
// process sleeps for a sixteenth of the time, in short naps: with older kernels as soon as a nap is
// due, with newer kernels when it has no work.
//
// Frames that are served one by one cost several times as much as frames served together, and delay
// other processes on the same processors. So a process that is busy for more than two thirds of the
// time, with few frames at a time, pauses to let more frames arrive.
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

/// A timer for the main loop.
class Alarm {
 public:
  /// Create an alarm that busy-waits for at most `max_awake_ns` per instant, or never if that is 0.
  /// If `naps_while_busy` is true, the process naps even while it has work.
  Alarm(std::int64_t max_awake_ns, bool naps_while_busy)
      : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        max_awake_ns_(max_awake_ns),
        naps_while_busy_(naps_while_busy),
        early_ns_(max_awake_ns / 2),
        accounted_until_(io::read_clock(CLOCK_MONOTONIC)) {
    if (timer_.get() < 0) io::throw_errno("cannot make a timer");
  }
  [[nodiscard]] int descriptor() const { return timer_.get(); }

  /// Set the timer for an instant (CLOCK_MONOTONIC, ns), or clear it. `frames` is the number of
  /// frames that were served since the last call. Return whether the caller should sleep; false if
  /// the instant is near, or if more frames may have arrived.
  bool set(std::optional<std::int64_t> instant, std::size_t frames) {
    const std::int64_t now = pay_sleep(io::read_clock(CLOCK_MONOTONIC), frames);
    // More frames may have arrived meanwhile, and reading is cheaper than setting the timer.
    if (frames > 0) return false;
    std::int64_t at = never;
    if (instant) {
      const std::int64_t left = *instant - now;
      // Setting the timer and waking up take longer than a short wait.
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

  /// Note that the caller has slept since set() returned true.
  void awake() { slept(io::read_clock(CLOCK_MONOTONIC)); }

  /// Read the timer after its descriptor has become readable.
  void note_expiry() {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) <= 0) return;
    const std::int64_t late = io::read_clock(CLOCK_MONOTONIC) - set_for_;
    set_for_ = never;
    // The estimate rises quickly and falls slowly, so that the timer is early enough in nearly all
    // cases.
    const std::int64_t error = late - early_ns_;
    early_ns_ += error > 0 ? error / 4 : error / 32;
    early_ns_ = std::clamp<std::int64_t>(early_ns_, 0, max_awake_ns_);
  }

 private:
  static constexpr std::int64_t never = 0;  // disarms the timer; see timerfd_settime(2)
  static constexpr std::int64_t setting_ns = 10'000;
  static constexpr std::int64_t awake_per_asleep = 15;
  static constexpr std::int64_t nap_ns = 100'000;
  static constexpr std::int64_t busy_per_pause = 2;
  static constexpr std::int64_t pause_ns = 20'000;
  static constexpr std::size_t many_frames = 16;

  /// Sleep if a nap or a pause is due. Return the time afterwards.
  std::int64_t pay_sleep(std::int64_t now, std::size_t frames) {
    const std::int64_t awake = now - accounted_until_;
    accounted_until_ = now;
    sleep_owed_ += awake / awake_per_asleep;
    if (frames == 0) {
      pause_owed_ = std::max(pause_owed_ - awake, -pause_ns);
    } else if (frames < many_frames) {
      pause_owed_ += awake / busy_per_pause;
    }
    if (sleep_owed_ >= nap_ns && (frames == 0 || naps_while_busy_)) return sleep(nap_ns);
    return pause_owed_ >= pause_ns ? sleep(pause_ns) : now;
  }
  std::int64_t sleep(std::int64_t ns) {
    const timespec span{0, ns};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &span, nullptr);
    return slept(io::read_clock(CLOCK_MONOTONIC));
  }
  std::int64_t slept(std::int64_t now) {
    const std::int64_t asleep = now - accounted_until_;
    accounted_until_ = now;
    sleep_owed_ = std::max(sleep_owed_ - asleep, -nap_ns);
    pause_owed_ = std::max(pause_owed_ - asleep, -pause_ns);
    return now;
  }

  io::Descriptor timer_;
  std::int64_t max_awake_ns_;
  bool naps_while_busy_;
  std::int64_t early_ns_;
  std::int64_t set_for_ = never;
  std::int64_t accounted_until_;  // time up to which waking and sleeping are accounted for
  std::int64_t sleep_owed_ = 0;
  std::int64_t pause_owed_ = 0;
};

}  // namespace nagi::runtime
