// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "daemon/alarm.hpp"
#include "daemon/privileges.hpp"

namespace nagi::daemon {

namespace {
constexpr timespec no_time{0, 0};
// With less it would wake up more often to look for frames than frames come.
constexpr model::Duration least_patience = std::chrono::microseconds(200);
}

Watch::Watch(const Emulator& emulator) {
  for (const int descriptor : emulator.descriptors()) add(descriptor, nullptr);
}

void Watch::add(int descriptor, std::function<void()> call) {
  watched_.push_back({descriptor, POLLIN, 0});
  calls_.push_back(std::move(call));
}

const std::vector<int>& Watch::sleep(const timespec* timeout, bool for_frames) {
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    watched_[i].events = for_frames || calls_[i] ? POLLIN : 0;
  }
  // Not epoll: it stays in the sockets' wait queues, and the kernel then calls it for every frame
  // that comes or goes, on both sides' processors; poll is there only while this process sleeps.
  const int ready = ppoll(watched_.data(), watched_.size(), timeout, nullptr);
  if (ready < 0 && errno != EINTR) io::throw_errno("poll");
  readable_.clear();
  for (std::size_t i = 0; ready > 0 && i < watched_.size(); ++i) {
    if (watched_[i].revents == 0) continue;
    if (calls_[i]) {
      calls_[i]();
    } else {
      readable_.push_back(watched_[i].fd);
    }
  }
  return readable_;
}

void serve_in_real_time(Emulator& emulator, Watch& watch, std::int64_t spin_ns) {
  Alarm alarm(spin_ns, !has_fair_server(kernel_release()));
  watch.add(alarm.descriptor(), [&alarm] { alarm.gone_off(); });
  const auto wait_for = [&alarm](const Emulator::Served& served) {
    return alarm.set(served.next_delivery_ns, served.idle);
  };
  bool may_sleep = true;
  // As long as it does not sleep, it asks the ports; signals and the control socket can wait.
  const int rounds_between_polls = emulator.is_free_to_ask() ? 64 : 1;
  for (int round = 0; !watch.ended(); ++round) {
    if (!may_sleep && round % rounds_between_polls != 0) {
      may_sleep = wait_for(emulator.serve({}));
      continue;
    }
    const std::vector<int>& readable = watch.sleep(may_sleep ? nullptr : &no_time);
    if (may_sleep) alarm.awake();
    may_sleep = wait_for(emulator.serve(readable));
  }
}

void serve_in_virtual_time(Emulator& emulator, Watch& watch) {
  emulator.leave_sending_to_poll();
  const std::vector<int> none;
  const std::vector<int>* readable = &none;
  while (!watch.ended()) {
    emulator.hold_time();
    const Emulator::Served served = emulator.serve(*readable);
    const model::Duration patience = emulator.patience();
    const bool patient = !served.quiet && patience >= least_patience;
    if (served.quiet) {
      readable = &watch.sleep(nullptr);
      continue;
    }
    std::int64_t ns = served.next_delivery_ns ? *served.next_delivery_ns - served.now_ns : 0;
    if (patient) ns = std::min<std::int64_t>(ns, patience.count());
    ns = std::max<std::int64_t>(ns, 0);
    const timespec left{ns / 1'000'000'000, ns % 1'000'000'000};
    readable = &watch.sleep(&left, !patient);
  }
}

}  // namespace nagi::daemon
