// SPDX-License-Identifier: Apache-2.0
//
// The functions of flows.hpp that run seldom: the beginning and the end of a connection, its
// handshake, and the numbers that are derived from its counts.
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
  Counts less;
  less.add_difference(*outside, counts);
  return less;
}

/// Restart the direction at the number of a SYN and discard what was seen before.
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

/// Count the difference from `before` as outside the measured interval.
void Direction::leave_out(const Counts& before) {
  if (!outside) outside = std::make_unique<Counts>();
  outside->add_difference(before, counts);
}

/// Return whether the byte before this number has been seen.
bool Direction::has_seen(std::int64_t number) const {
  if (number <= low_ || number > next_) return false;
  const auto hole = std::partition_point(holes_.begin(), holes_.end(),
                                         [=](const Hole& each) { return each.end < number; });
  return hole == holes_.end() || hole->begin >= number;
}

std::int64_t Direction::uncaptured_bytes() const {
  if (acked_ == unknown || !started_) return 0;
  // An acknowledgement far beyond belongs to another connection. A FIN takes one number.
  constexpr std::int64_t believable = 1 << 30;
  const std::int64_t beyond = acked_ - next_ - (fin_seen_ ? 0 : 1);
  std::int64_t bytes = beyond > 0 && beyond < believable ? beyond : 0;
  for (const Hole& hole : holes_) {
    if (hole.begin < acked_) bytes += std::min(hole.end, acked_) - hole.begin;
  }
  return bytes;
}

Place Connection::captured_at(unsigned direction) const {
  constexpr double at_an_end = 0.1;  // share of the round-trip time
  // ns; a shorter round trip is too inaccurate to locate the capture point
  constexpr double shortest_round_trip = 200e3;
  // Round-trip times from the capture point to the two ends.
  std::array<double, 2> to{};
  for (unsigned end = 0; end < 2; ++end) {
    double least = std::numeric_limits<double>::infinity();
    const Direction* towards = directions[1 - end].get();
    if (towards != nullptr && towards->rtt_sequence) least = towards->rtt_sequence->least();
    if (handshake) {
      const std::int64_t time = end == 1 ? handshake->to_listener() : handshake->to_caller();
      if (time != Handshake::none) least = std::min(least, static_cast<double>(time));
    }
    to[end] = std::max(least, 0.0);
  }
  const double whole = to[0] + to[1];
  if (!(whole >= shortest_round_trip) || std::isinf(whole)) return Place::unknown;
  const double share = to[direction] / whole;  // share of the path, from the source
  if (share <= at_an_end) return Place::source;
  return share >= 1 - at_an_end ? Place::destination : Place::between;
}

Engine::Engine(const Options& options, Left left)
    : options_(options), left_(std::move(left)), tracker_(Gone{this}) {}

Connection* Engine::connection(std::uint32_t number) {
  for (Connection& each : tracker_.places()) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

void Engine::finish() {
  std::vector<Connection*> rest;
  for (Connection& each : tracker_.places()) {
    if (each.number != Tracked::none) rest.push_back(&each);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Connection* a, const Connection* b) { return a->number < b->number; });
  for (Connection* each : rest) leave(*each);
}

void Engine::leave(Connection& connection) {
  for (const auto& direction : connection.directions) {
    if (direction) {
      outstanding_ -= direction->outstanding_.capacity() + direction->stamps_.capacity();
      if (connection.copied_apart) {
        direction->rtt_sequence.reset();
        direction->rtt_timestamps.reset();
        for (SeriesRow& each : direction->series) each.rtt_count = each.rtt_most = 0;
      }
    }
  }
  if (connection.copied_apart) connection.handshake.reset();
  if (left_) left_(connection);
}

void Engine::count_from(std::int64_t time_ns) {
  const Options open;
  if (options_.start_ns != open.start_ns) options_.start_ns += time_ns;
  if (options_.end_ns != open.end_ns) options_.end_ns += time_ns;
}

void Engine::begin(std::int64_t time_ns) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  origin_ns_ = options_.start_ns == none ? time_ns : options_.start_ns;
  has_origin_ = true;
}

/// Handle a SYN-ACK whose number differs from its direction's. Return true if it is one of several
/// answers to the SYN, of which select_syn_ack() later chooses one.
bool Engine::answers_again(const Packet& packet, Connection& connection, unsigned number,
                           Direction& mine, Direction& other) {
  constexpr std::size_t most = 8;
  if (!mine.sent_syn_ack_) {
    // Earlier packets, such as a challenge ACK (RFC 5961), belonged to another connection.
    if (mine.counts.data_packets != 0) return false;
    mine.renumber(packet.sequence);
    other.acked_ = Direction::unknown;
    connection.numbers[number].next = packet.sequence + 1;
    return false;
  }
  ++mine.syn_packets;
  if (connection.handshake && !connection.complete_handshake) {
    connection.handshake->syn_ack_again = true;
  }
  // one of the answers has been selected
  if (mine.acked_ != Direction::unknown || mine.counts.data_packets != 0) return true;
  if (!mine.rivals_) mine.rivals_ = std::make_unique<std::vector<Packet>>();
  if (mine.rivals_->size() < most) mine.rivals_->push_back(packet);
  return true;
}

/// Select the SYN-ACK that precedes `after_syn`, the first number used after the SYN.
void Engine::settle(std::uint32_t after_syn, Connection& connection, unsigned number,
                    Direction& mine, Direction& other) {
  const auto holds = [=](const Packet& each) { return after_syn == each.sequence + 1; };
  const auto rival = std::find_if(mine.rivals_->begin(), mine.rivals_->end(), holds);
  if (rival != mine.rivals_->end()) {
    mine.renumber(rival->sequence);
    connection.numbers[number].first = rival->sequence;
    connection.numbers[number].next = rival->sequence + 1;
    --mine.syn_packets;  // add_syn() counts the SYN again
    open(*rival, connection, number, mine, other);
    mine.see(0, 1);
  } else if (after_syn != mine.base_ + 1) {
    return;  // the number agrees with no SYN-ACK
  }
  mine.rivals_.reset();
}

void Engine::open(const Packet& packet, Connection& connection, unsigned number, Direction& mine,
                  Direction& other) {
  ++mine.syn_packets;
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
  ((packet.flags & flag_ack) != 0 ? mine.sent_syn_ack_ : mine.sent_syn_) = true;
  mine.low_ = Direction::unknown;  // no bytes precede a SYN
  mine.has_whole_syn_ = !packet.options_cut;
  if (packet.mss != 0) mine.mss = packet.mss;
  if (packet.window_scale >= 0) mine.window_scale = packet.window_scale;
  mine.sack_permitted = mine.sack_permitted || packet.sack_permitted;
  // Windows are scaled if both sides offer it (RFC 7323, section 2.2). One SYN may not be in the
  // capture.
  const bool refused = other.syn_packets != 0 && other.window_scale < 0;
  const bool mine_scaled = mine.window_scale >= 0 && !refused;
  mine.shift_ = static_cast<std::uint8_t>(mine_scaled ? mine.window_scale : 0);
  const bool other_scaled = other.window_scale >= 0 && mine.window_scale >= 0;
  other.shift_ = static_cast<std::uint8_t>(other_scaled ? other.window_scale : 0);
}

SeriesRow* Engine::new_row(Direction& direction, std::int64_t index) {
  auto& rows = direction.series;
  auto place = rows.end();  // usually the end: times seldom go back
  while (place != rows.begin() && std::prev(place)->index > index) --place;
  if (place != rows.begin() && std::prev(place)->index == index) return &*std::prev(place);
  SeriesRow fresh;
  fresh.index = index;
  return &*rows.insert(place, fresh);
}
}  // namespace nagi::captures
