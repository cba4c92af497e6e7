// SPDX-License-Identifier: Apache-2.0
//
// What a service does all the time: sleep until a frame comes or is due, and serve.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <vector>

#include "service/service.hpp"

namespace nagi::runtime {

/// What wakes a loop beside its clock: the service's ports, and descriptors that have somebody to
/// call. Until a call ends the loop.
class Watch {
 public:
  explicit Watch(const Service& service);
  void add(int descriptor, std::function<void()> call);
  /// Looks at a descriptor no more.
  void remove(int descriptor);
  void end() { ended_ = true; }
  [[nodiscard]] bool ended() const { return ended_; }

  /// Sleeps until something happens, at most for `timeout`. Calls whoever is to be called, and
  /// returns the ports that have frames, if those are to wake it at all.
  const std::vector<int>& sleep(const std::optional<timespec>& timeout, bool for_frames = true);

 private:
  std::vector<pollfd> watched_;  // the ports first
  std::vector<std::function<void()>> calls_;
  std::vector<int> readable_;
  bool ended_ = false;
};

/// Serves until the watch has ended. `spin_ns`: how long at most to wait awake.
void serve_in_real_time(Service& service, Watch& watch, std::int64_t spin_ns);

/// The same where time stands still while this process runs, as in a guest of the virtual lab: only
/// sleeping lets it pass, and system calls are what costs. So frames are looked at only as often as
/// their delays demand, many at once, and given to the kernel with the instants to send them at
/// (Service::serve_ahead). Without a delay they are served frame by frame.
void serve_in_virtual_time(Service& service, Watch& watch);

}  // namespace nagi::runtime
