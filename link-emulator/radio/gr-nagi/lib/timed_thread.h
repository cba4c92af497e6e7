/* SPDX-License-Identifier: Apache-2.0 */
//
// A thread that performs actions when they are due, by CLOCK_MONOTONIC.
#pragma once

#include <sys/prctl.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "io/clock.hpp"

namespace gr::nagi {

class TimedThread {
 public:
  /// A function that performs the actions that are due at `now` (ns). It returns the time of the
  /// next action in ns, or nullopt if there is none.
  using Step = std::function<std::optional<std::int64_t>(std::int64_t now)>;

  explicit TimedThread(Step step) : step_(std::move(step)) {}
  ~TimedThread() { stop(); }
  TimedThread(const TimedThread&) = delete;
  TimedThread& operator=(const TimedThread&) = delete;

  void start() {
    if (thread_.joinable()) return;
    stopping_ = false;
    thread_ = std::thread([this] { run(); });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  /// Make the thread call `step` again, because an action may be due sooner.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }

 private:
  void run() {
    prctl(PR_SET_TIMERSLACK, 1UL);  // ns; by default, timers may be 50 us late
    const auto called = [this] { return woken_ || stopping_; };
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      woken_ = false;
      lock.unlock();
      const auto next = step_(::nagi::io::read_clock(CLOCK_MONOTONIC));
      lock.lock();
      if (next) {
        const std::chrono::steady_clock::time_point due{std::chrono::nanoseconds{*next}};
        changed_.wait_until(lock, due, called);
      } else {
        changed_.wait(lock, called);
      }
    }
  }

  Step step_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopping_ = false;
};

}  // namespace gr::nagi
