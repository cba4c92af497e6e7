// SPDX-License-Identifier: Apache-2.0
//
// The functions of flows.hpp that are not called for every packet: the beginning and the end of a
// connection, its handshake, and the numbers that are computed from its counts.
#include <algorithm>
#include <cmath>
#include <utility>

#include "native/flows.hpp"

namespace nagi::captures {

void Counts::add_difference(const Counts& before, const Counts& after) {
  packets += after.packets - before.packets;
  ip_bytes += after.ip_bytes - before.ip_bytes;
  payload_bytes += after.payload_bytes - before.payload_bytes;
  data_packets += after.data_packets - before.data_packets;
  first_time_bytes += after.first_time_bytes - before.first_time_bytes;
  retransmitted_packets += after.retransmitted_packets - before.retransmitted_packets;
  retransmitted_bytes += after.retransmitted_bytes - before.retransmitted_bytes;
  out_of_order_packets += after.out_of_order_packets - before.out_of_order_packets;
}

Counts Direction::inside() const {
  if (!outside) return counts;
  Counts difference;
  difference.add_difference(*outside, counts);
  return difference;
}

/// Restart the sequence numbers of the direction at a SYN, and forget all earlier numbers.
void Direction::renumber(std::uint32_t first) {
  base_ = first;
  has_base_ = started_ = true;
  next_ = low_ = 0;
  acked_ = unknown;
  holes_.clear();
  while (!outstanding_.empty()) outstanding_.pop();
  mss = -1;
  window_scale = -1;
  sack_permitted = false;
}

/// Record that the change of the counts since `before` is outside the measured interval.
void Direction::count_outside(const Counts& before) {
  if (!outside) outside = std::make_unique<Counts>();
  outside->add_difference(before, counts);
}

/// Return whether the byte before `number`, number - 1, has been captured.
bool Direction::has_seen(std::int64_t number) const {
  if (number <= low_ || number > next_) return false;
  const auto hole = std::partition_point(holes_.begin(), holes_.end(),
                                         [=](const Hole& each) { return each.end < number; });
  return hole == holes_.end() || hole->begin >= number;
}

std::int64_t Direction::uncaptured_bytes() const {
  if (acked_ == unknown || !started_) return 0;
  // An acknowledgement far above next_ belongs to another connection. If no FIN was captured, one
  // of the acknowledged numbers may be that of a FIN.
  constexpr std::int64_t max_plausible = 1 << 30;
  const std::int64_t beyond = acked_ - next_ - (fin_seen_ ? 0 : 1);
  std::int64_t bytes = beyond > 0 && beyond < max_plausible ? beyond : 0;
  for (const Hole& hole : holes_) {
    if (hole.begin < acked_) bytes += std::min(hole.end, acked_) - hole.begin;
  }
  return bytes;
}

CapturePoint Connection::capture_point(unsigned direction) const {
  constexpr double at_an_end = 0.1;  // share of the round-trip time
  // ns; a shorter round trip is too inaccurate to locate the capture point
  constexpr double shortest_round_trip = 200e3;
  // Round-trip times from the capture point to the two ends.
  std::array<double, 2> to{};
  for (unsigned end = 0; end < 2; ++end) {
    double least = std::numeric_limits<double>::infinity();
    const Direction* towards = directions[1 - end].get();
    if (towards != nullptr && towards->rtt_sequence) least = towards->rtt_sequence->min();
    if (handshake) {
      const std::int64_t time = end == 1 ? handshake->to_listener() : handshake->to_caller();
      if (time != Handshake::none) least = std::min(least, static_cast<double>(time));
    }
    to[end] = std::max(least, 0.0);
  }
  const double whole = to[0] + to[1];
  if (!(whole >= shortest_round_trip) || std::isinf(whole)) return CapturePoint::unknown;
  const double share = to[direction] / whole;  // share of the path, from the source
  if (share <= at_an_end) return CapturePoint::source;
  return share >= 1 - at_an_end ? CapturePoint::destination : CapturePoint::between;
}

Engine::Engine(const Options& options, EndHandler on_end)
    : options_(options), on_end_(std::move(on_end)), tracker_(OnEnd{this}) {}

Connection* Engine::connection(std::uint32_t number) {
  for (Connection& each : tracker_.slots()) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

void Engine::finish() {
  std::vector<Connection*> remaining;
  for (Connection& each : tracker_.slots()) {
    if (each.number != Tracked::none) remaining.push_back(&each);
  }
  std::sort(remaining.begin(), remaining.end(),
            [](const Connection* a, const Connection* b) { return a->number < b->number; });
  for (Connection* each : remaining) end_connection(*each);
}

/// Discard values that are not reliable, and pass the connection to the handler of its end.
void Engine::end_connection(Connection& connection) {
  for (const auto& direction : connection.directions) {
    if (direction) {
      outstanding_ -= direction->outstanding_.capacity() + direction->stamps_.capacity();
      if (connection.captured_at_several_points) {
        direction->rtt_sequence.reset();
        direction->rtt_timestamps.reset();
        for (SeriesRow& each : direction->series) each.rtt_count = each.max_rtt = 0;
      }
    }
  }
  if (connection.captured_at_several_points) connection.handshake.reset();
  if (on_end_) on_end_(connection);
}

void Engine::resolve_relative_times(std::int64_t time_ns) {
  const Options open;
  if (options_.start_ns != open.start_ns) options_.start_ns += time_ns;
  if (options_.end_ns != open.end_ns) options_.end_ns += time_ns;
}

void Engine::set_origin(std::int64_t time_ns) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  origin_ns_ = options_.start_ns == none ? time_ns : options_.start_ns;
  has_origin_ = true;
}

/// Handle a SYN-ACK whose number differs from the first number of its direction. Return true if it
/// is one of several SYN-ACKs for a SYN, from which select_syn_ack() later selects one.
bool Engine::handle_further_syn_ack(const Packet& packet, Connection& connection, unsigned number,
                                    Direction& direction, Direction& opposite) {
  constexpr std::size_t max_rivals = 8;
  if (!direction.sent_syn_ack_) {
    // Earlier packets, such as a challenge ACK (RFC 5961), belonged to another connection.
    if (direction.counts.data_packets != 0) return false;
    direction.renumber(packet.sequence);
    opposite.acked_ = Direction::unknown;
    connection.numbers[number].next = packet.sequence + 1;
    return false;
  }
  ++direction.syn_packets;
  if (connection.handshake && !connection.complete_handshake) {
    connection.handshake->syn_ack_again = true;
  }
  // One of the SYN-ACKs has already been selected.
  if (direction.acked_ != Direction::unknown || direction.counts.data_packets != 0) return true;
  if (!direction.rivals_) direction.rivals_ = std::make_unique<std::vector<Packet>>();
  if (direction.rivals_->size() < max_rivals) direction.rivals_->push_back(packet);
  return true;
}

/// Select the SYN-ACK whose number is one below `after_syn`, the first number after it.
void Engine::select_syn_ack(std::uint32_t after_syn, Connection& connection, unsigned number,
                            Direction& direction, Direction& opposite) {
  const auto is_selected = [=](const Packet& each) { return after_syn == each.sequence + 1; };
  const auto rival =
      std::find_if(direction.rivals_->begin(), direction.rivals_->end(), is_selected);
  if (rival != direction.rivals_->end()) {
    direction.renumber(rival->sequence);
    connection.numbers[number].first = rival->sequence;
    connection.numbers[number].next = rival->sequence + 1;
    --direction.syn_packets;  // add_syn() counts the SYN again
    add_syn(*rival, connection, number, direction, opposite);
    direction.add_interval(0, 1);
  } else if (after_syn != direction.base_ + 1) {
    return;  // the number agrees with no SYN-ACK
  }
  direction.rivals_.reset();
}

/// Process a SYN, with ACK or without: its options, and its time for the handshake.
void Engine::add_syn(const Packet& packet, Connection& connection, unsigned number,
                     Direction& direction, Direction& opposite) {
  ++direction.syn_packets;
  if (!connection.handshake) connection.handshake = std::make_unique<Handshake>();
  Handshake& handshake = *connection.handshake;
  if ((packet.flags & flag_ack) != 0) {
    if (handshake.syn_ack_ns == Handshake::none) {
      handshake.syn_ack_ns = packet.time_ns;
    } else if (!connection.complete_handshake) {
      handshake.syn_ack_again = true;
    }
  } else if (number == 0 && handshake.syn_ns == Handshake::none) {
    handshake.syn_ns = packet.time_ns;
  } else if (handshake.syn_ack_ns == Handshake::none) {
    handshake.syn_again = true;
  }
  ((packet.flags & flag_ack) != 0 ? direction.sent_syn_ack_ : direction.sent_syn_) = true;
  direction.low_ = Direction::unknown;  // no bytes precede a SYN
  direction.has_whole_syn_ = !packet.options_cut;
  if (packet.mss != 0) direction.mss = packet.mss;
  if (packet.window_scale >= 0) direction.window_scale = packet.window_scale;
  direction.sack_permitted = direction.sack_permitted || packet.sack_permitted;
  // Windows are scaled if both SYNs have the option (RFC 7323, section 2.2). If one SYN was not
  // captured, it is assumed to have the option.
  const bool refused = opposite.syn_packets != 0 && opposite.window_scale < 0;
  const bool is_scaled = direction.window_scale >= 0 && !refused;
  direction.shift_ = static_cast<std::uint8_t>(is_scaled ? direction.window_scale : 0);
  const bool is_opposite_scaled = opposite.window_scale >= 0 && direction.window_scale >= 0;
  opposite.shift_ = static_cast<std::uint8_t>(is_opposite_scaled ? opposite.window_scale : 0);
}

/// Return the row for the interval with an index; insert it in ascending order if it is missing.
SeriesRow* Engine::add_series_row(Direction& direction, std::int64_t index) {
  auto& rows = direction.series;
  auto position = rows.end();  // usually the right one, as times seldom decrease
  while (position != rows.begin() && std::prev(position)->index > index) --position;
  if (position != rows.begin() && std::prev(position)->index == index) {
    return &*std::prev(position);
  }
  SeriesRow fresh;
  fresh.index = index;
  return &*rows.insert(position, fresh);
}
}  // namespace nagi::captures
