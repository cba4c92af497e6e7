// SPDX-License-Identifier: Apache-2.0
//
// Drives links in real time: the model goes on with the clock, and what it delivers is handed to
// the kernel as soon as it is due.
#pragma once

#include <vector>

#include "daemon/held_frame.hpp"
#include "daemon/link_direction.hpp"
#include "daemon/shared_medium.hpp"
#include "io/frame_pool.hpp"
#include "io/port.hpp"
#include "service/clock.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

class RealTimeDriver {
 public:
  RealTimeDriver(std::vector<LinkDirection*> directions, std::vector<SharedMedium*> media,
                 const runtime::RealTime& time, io::FramePool& pool)
      : directions_(std::move(directions)), media_(std::move(media)), time_(time), pool_(pool) {}

  /// Takes in what waits at the descriptors in `readable`, and hands over what is due.
  runtime::Served serve(const std::vector<int>& readable);

 private:
  void hand_over(LinkDirection& direction);

  std::vector<LinkDirection*> directions_;
  std::vector<SharedMedium*> media_;
  const runtime::RealTime& time_;
  io::FramePool& pool_;
  std::vector<Instant> known_;  // up to when arrivals of each direction are
  std::vector<io::Frame> frames_;
  std::vector<HeldFrame> leaving_;  // their slots are no longer ours when they are recorded
};

}  // namespace nagi::daemon
