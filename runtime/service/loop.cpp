// SPDX-License-Identifier: Apache-2.0
#include "service/loop.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "service/alarm.hpp"
#include "service/privileges.hpp"

namespace nagi::runtime {

namespace {
constexpr timespec no_time{0, 0};
// With a shorter lookahead, the loop would poll for frames more often than frames arrive.
constexpr Duration min_lookahead = std::chrono::microseconds(200);
// With a longer lookahead, the rings would have to hold many frames.
constexpr Duration max_lookahead = std::chrono::milliseconds(20);

timespec timespec_of(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}
}  // namespace

Watch::Watch(const Service& service) {
  for (const int descriptor : service.descriptors()) add(descriptor, nullptr);
}

void Watch::add(int descriptor, std::function<void()> call) {
  watched_.push_back({descriptor, POLLIN, 0});
  calls_.push_back(std::move(call));
}

void Watch::remove(int descriptor) {
  for (pollfd& entry : watched_) {
    if (entry.fd == descriptor) entry.fd = -1;  // poll(2) ignores it
  }
}

const std::vector<int>& Watch::sleep(const std::optional<timespec>& timeout, bool for_frames) {
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    watched_[i].events = for_frames || calls_[i] ? POLLIN : 0;
  }
  // The loop does not use epoll, because epoll stays in the wait queues of the sockets. The kernel
  // would call epoll for every frame that arrives or leaves, on the processors of sender and
  // receiver. poll is in these queues only while this process sleeps.
  const int ready = ppoll(watched_.data(), watched_.size(), timeout ? &*timeout : nullptr, nullptr);
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

void serve_in_real_time(Service& service, Watch& watch, std::int64_t spin_ns) {
  Alarm alarm(spin_ns, !has_fair_server(kernel_release()));
  watch.add(alarm.descriptor(), [&alarm] { alarm.note_expiry(); });
  const auto wait_for = [&alarm](const Served& served) {
    return alarm.set(served.next_delivery_ns, served.frames);
  };
  bool may_sleep = true;
  // While the loop does not sleep, it reads only the ports. Signals and the control socket can
  // wait.
  const int rounds_between_polls = service.is_cheap_to_read() ? 64 : 1;
  for (int round = 0; !watch.ended(); ++round) {
    if (!may_sleep && round % rounds_between_polls != 0) {
      may_sleep = wait_for(service.serve({}));
      continue;
    }
    const std::vector<int>& readable =
        watch.sleep(may_sleep ? std::nullopt : std::optional(no_time));
    if (may_sleep) alarm.awake();
    may_sleep = wait_for(service.serve(readable));
  }
}

void serve_in_virtual_time(Service& service, Watch& watch) {
  const std::vector<int> none;
  const std::vector<int>* readable = &none;
  while (!watch.ended()) {
    service.hold_time();
    const Duration lookahead = service.lookahead();
    const bool ahead = lookahead >= min_lookahead;
    const Served served = ahead ? service.serve_ahead() : service.serve(*readable);
    std::optional<std::int64_t> at = served.next_delivery_ns;
    if (ahead && !served.quiet) {
      at = served.now_ns + std::min(lookahead, max_lookahead).count() / 2;
    }
    // Frames wake the loop only if nothing else wakes it in time.
    readable = &watch.sleep(at ? std::optional(timespec_of(*at - served.now_ns)) : std::nullopt,
                            !ahead || served.quiet);
  }
}

}  // namespace nagi::runtime
