// SPDX-License-Identifier: Apache-2.0
//
// Functions for both fuzzers: pass packets through a program, and check that the counters have an
// outcome for every packet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "program/control.hpp"
#include "program/machine.hpp"

namespace nagi::p4 {

inline constexpr std::size_t fuzz_slot_bytes = 2048;

/// Pass one packet and all resulting packets through the machine, up to a limit.
inline void pass(Machine& machine, io::FramePool& pool, Port port,
                 std::span<const std::uint8_t> bytes, std::uint64_t now_us) {
  const io::Slot slot = pool.take();
  const std::size_t length = std::min(bytes.size(), fuzz_slot_bytes);
  std::copy_n(bytes.begin(), length, pool.data(slot));
  std::vector<Queued> queued;
  machine.ingress(port, {slot, 0, static_cast<std::uint32_t>(length)}, now_us, queued);
  std::deque<Queued> waiting;
  for (int budget = 200;; --budget) {
    for (Queued& one : queued) waiting.push_back(std::move(one));
    queued.clear();
    if (waiting.empty() || budget == 0) break;  // the remaining packets are released unsent
    Queued next = std::move(waiting.front());
    waiting.pop_front();
    if (next.packet->size() > (1 << 20)) std::abort();
    const auto frame =
        machine.egress(std::move(next.packet), next.port, {1, 2, 3, 4, 0}, now_us + 5, queued);
    if (frame) pool.give_back(frame->slot);
  }
}

/// Return whether every packet has exactly one outcome.
inline bool adds_up(const Counters& counts) {
  return counts.received + counts.copies == counts.ended();
}

}  // namespace nagi::p4
