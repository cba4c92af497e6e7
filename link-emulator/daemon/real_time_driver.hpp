// SPDX-License-Identifier: Apache-2.0
//
// The driver for real time: it advances the models with the clock, and hands packets to the kernel
// as soon as they are due.
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

  /// Read frames from the descriptors in `readable`, and hand over the frames that are due.
  runtime::Served serve(const std::vector<int>& readable);

 private:
  void hand_over(LinkDirection& direction);

  std::vector<LinkDirection*> directions_;
  std::vector<SharedMedium*> media_;
  const runtime::RealTime& time_;
  io::FramePool& pool_;
  std::vector<Instant> known_;  // instant up to which the arrivals of each direction are known
  std::vector<io::Frame> frames_;
  std::vector<HeldFrame> leaving_;  // copies of notes, since the slots are reused before recording
};

}  // namespace nagi::daemon
