// SPDX-License-Identifier: Apache-2.0
//
// The main loop of a service: sleep until a frame arrives or is due, then serve.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <vector>

#include "service/service.hpp"

namespace nagi::runtime {

/// The descriptors that wake a loop: those of the service's ports, and further descriptors, each
/// with a function to call. The loop runs until a function calls end().
class Watch {
 public:
  explicit Watch(const Service& service);
  void add(int descriptor, std::function<void()> call);
  /// Stop watching a descriptor.
  void remove(int descriptor);
  void end() { ended_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }

  /// Sleep until a descriptor is readable, at most for `timeout`, or without limit if there is
  /// none. Call the functions of readable descriptors, and return the descriptors of readable
  /// ports. If `for_frames` is false, ports do not wake the loop.
  const std::vector<int>& sleep(const std::optional<timespec>& timeout, bool for_frames = true);

 private:
  std::vector<pollfd> watched_;  // the ports first
  std::vector<std::function<void()>> calls_;
  std::vector<int> readable_;
  bool ended_ = false;
};

/// Serve until the watch has ended. `spin_ns` is the longest time to busy-wait for an instant.
void serve_in_real_time(Service& service, Watch& watch, std::int64_t spin_ns);

/// Serve until the watch has ended, in virtual time: the clock stops while this process runs, as in
/// a guest of the virtual lab, and advances only while it sleeps. Only system calls take time. So
/// the loop reads frames only as often as their delays require, many at once, and hands them to the
/// kernel with the times at which to send them (Service::serve_ahead). If the delay is too short,
/// the loop serves frame by frame.
void serve_in_virtual_time(Service& service, Watch& watch);

}  // namespace nagi::runtime
