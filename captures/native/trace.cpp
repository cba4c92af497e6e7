// SPDX-License-Identifier: Apache-2.0
#include "native/trace.hpp"

namespace nagi::captures {

namespace {

void add_sample(Trace::Samples& to, std::int64_t time_ns, std::int64_t value) {
  if (value < 0) return;
  to.time_ns.push_back(time_ns);
  to.value.push_back(value);
}

}  // namespace

void Tracer::add(const Packet& packet, const Seen& seen) {
  if (seen.connection != connection_ || seen.copy) return;
  if (seen.direction == direction_) {
    add_segment(packet, seen);
  } else {
    add_answer(packet, seen);
  }
}

void Tracer::add_segment(const Packet& packet, const Seen& seen) {
  const bool special = (packet.flags & (flag_syn | flag_fin | flag_rst)) != 0;
  if (packet.payload == 0 && !special && !seen.probe) return;
  SegmentKind kind = SegmentKind::fresh;
  if (seen.retransmission) kind = SegmentKind::retransmission;
  if (seen.out_of_order) kind = SegmentKind::out_of_order;
  if (seen.probe) kind = SegmentKind::probe;
  Trace::Segments& to = trace_.segments;
  to.time_ns.push_back(packet.time_ns);
  to.begin.push_back(seen.sequence);
  to.end.push_back(seen.sequence + packet.sequence_length());
  to.kind.push_back(static_cast<std::uint8_t>(kind));
  to.flags.push_back(packet.flags);
  add_sample(trace_.in_flight, packet.time_ns, seen.in_flight);
}

void Tracer::add_answer(const Packet& packet, const Seen& seen) {
  if ((packet.flags & flag_ack) == 0 || (packet.flags & flag_rst) != 0) return;
  Trace::Acknowledgements& to = trace_.acknowledgements;
  to.time_ns.push_back(packet.time_ns);
  to.number.push_back(seen.acknowledgement);
  to.window_end.push_back(seen.acknowledgement + seen.window);
  to.duplicate.push_back(seen.duplicate_ack ? 1 : 0);
  for (std::size_t i = 0; i + 1 < packet.sack_edges; i += 2) {
    trace_.sacks.time_ns.push_back(packet.time_ns);
    trace_.sacks.begin.push_back(seen.sack[i]);
    trace_.sacks.end.push_back(seen.sack[i + 1]);
  }
  add_sample(trace_.rtt_sequence, packet.time_ns, seen.rtt_sequence_ns);
  add_sample(trace_.rtt_timestamps, packet.time_ns, seen.rtt_timestamps_ns);
}

}  // namespace nagi::captures
