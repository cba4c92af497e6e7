// SPDX-License-Identifier: Apache-2.0
//
// Collects one direction of a connection over time, for plots: its segments, the acknowledgements
// and windows of the other side, round-trip times and bytes in flight. Sequence numbers are
// unwrapped; 0 is the SYN or, if no SYN was captured, the first number. flows.hpp defines how
// packets are classified. Memory: 25 bytes per segment, 25 per acknowledgement, 24 per SACK block.
#pragma once

#include <cstdint>
#include <vector>

#include "native/flows.hpp"

namespace nagi::captures {

enum class SegmentKind : std::uint8_t { fresh, retransmission, out_of_order, probe };

struct Trace {
  struct Segments {
    std::vector<std::int64_t> time_ns, begin, end;  // SYN and FIN take one number each
    std::vector<std::uint8_t> kind, flags;
  } segments;
  struct Acknowledgements {
    std::vector<std::int64_t> time_ns, number, window_end;
    std::vector<std::uint8_t> duplicate;
  } acknowledgements;
  struct Sacks {
    std::vector<std::int64_t> time_ns, begin, end;
  } sacks;
  struct Samples {
    std::vector<std::int64_t> time_ns, value;
  } rtt_sequence, rtt_timestamps, in_flight;
};

/// Collects the trace of one direction from the engine's classification of packets.
class Tracer {
 public:
  Tracer(std::uint32_t connection, unsigned direction)
      : connection_(connection), direction_(direction) {}

  void add(const Packet& packet, const Classification& result);
  [[nodiscard]] Trace& trace() { return trace_; }

 private:
  void add_segment(const Packet& packet, const Classification& result);
  void add_answer(const Packet& packet, const Classification& result);

  std::uint32_t connection_;
  unsigned direction_;
  Trace trace_;
};

}  // namespace nagi::captures
