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

void Tracer::add(const Packet& packet, const Classification& result) {
  if (result.connection != connection_ || result.copy) return;
  if (result.direction == direction_) {
    add_segment(packet, result);
  } else {
    add_answer(packet, result);
  }
}

void Tracer::add_segment(const Packet& packet, const Classification& result) {
  const bool special = (packet.flags & (flag_syn | flag_fin | flag_rst)) != 0;
  if (packet.payload == 0 && !special && !result.probe) return;
  SegmentKind kind = SegmentKind::fresh;
  if (result.retransmission) kind = SegmentKind::retransmission;
  if (result.out_of_order) kind = SegmentKind::out_of_order;
  if (result.probe) kind = SegmentKind::probe;
  Trace::Segments& to = trace_.segments;
  to.time_ns.push_back(packet.time_ns);
  to.begin.push_back(result.sequence);
  to.end.push_back(result.sequence + packet.sequence_length());
  to.kind.push_back(static_cast<std::uint8_t>(kind));
  to.flags.push_back(packet.flags);
  add_sample(trace_.in_flight, packet.time_ns, result.in_flight);
}

void Tracer::add_answer(const Packet& packet, const Classification& result) {
  if ((packet.flags & flag_ack) == 0 || (packet.flags & flag_rst) != 0) return;
  Trace::Acknowledgements& to = trace_.acknowledgements;
  to.time_ns.push_back(packet.time_ns);
  to.number.push_back(result.acknowledgement);
  to.window_end.push_back(result.acknowledgement + result.window);
  to.duplicate.push_back(result.duplicate_ack ? 1 : 0);
  for (std::size_t i = 0; i + 1 < packet.sack_edges; i += 2) {
    trace_.sacks.time_ns.push_back(packet.time_ns);
    trace_.sacks.begin.push_back(result.sack[i]);
    trace_.sacks.end.push_back(result.sack[i + 1]);
  }
  add_sample(trace_.rtt_sequence, packet.time_ns, result.rtt_sequence_ns);
  add_sample(trace_.rtt_timestamps, packet.time_ns, result.rtt_timestamps_ns);
}

}  // namespace nagi::captures
