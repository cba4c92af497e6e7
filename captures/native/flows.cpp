// SPDX-License-Identifier: Apache-2.0
#include "native/flows.hpp"

#include <algorithm>

namespace nagi::captures {

// ---------------------------------------------------------------------------------- sequence space

/// Takes [begin, end) as seen; returns how much of it had not been.
std::int64_t Direction::see(std::int64_t begin, std::int64_t end) {
  if (begin == next_) [[likely]] {
    next_ = end;
    return end - begin;
  }
  if (begin > next_) {
    add_hole(holes_.size(), {next_, begin});
    next_ = end;
    return end - begin;
  }
  std::int64_t fresh = fill(begin, std::min(end, next_));
  if (end > next_) {
    fresh += end - next_;
    next_ = end;
  }
  return fresh;
}

/// Takes [begin, end) out of what has not been seen; returns how much of it was in there.
std::int64_t Direction::fill(std::int64_t begin, std::int64_t end) {
  std::int64_t filled = 0;
  if (begin < low_) {
    filled += std::min(end, low_) - begin;
    if (end < low_) add_hole(0, {end, low_});
    low_ = begin;
  }
  const auto first = std::partition_point(holes_.begin(), holes_.end(),
                                          [=](const Hole& hole) { return hole.end <= begin; });
  auto gone_from = first;
  auto hole = first;
  if (hole != holes_.end() && hole->begin < begin && hole->end > end) {  // within one hole
    const Hole above{end, hole->end};
    hole->end = begin;
    add_hole(static_cast<std::size_t>(hole - holes_.begin()) + 1, above);
    return filled + (end - begin);
  }
  if (hole != holes_.end() && hole->begin < begin) {
    filled += hole->end - begin;
    hole->end = begin;
    gone_from = ++hole;
  }
  while (hole != holes_.end() && hole->end <= end) {
    filled += hole->end - hole->begin;
    ++hole;
  }
  if (hole != holes_.end() && hole->begin < end) {
    filled += end - hole->begin;
    hole->begin = end;
  }
  holes_.erase(gone_from, hole);
  return filled;
}

void Direction::add_hole(std::size_t place, Hole hole) {
  holes_.insert(holes_.begin() + static_cast<std::ptrdiff_t>(place), hole);
  if (holes_.size() > max_holes) holes_.erase(holes_.begin());
}

// ------------------------------------------------------------------------------------------ engine

Seen Engine::add(const Packet& packet) {
  if (!has_origin_) [[unlikely]] {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
    origin_ns_ = options_.start_ns == none ? packet.time_ns : options_.start_ns;
    has_origin_ = true;
  }
  unsigned number = 0;
  Connection* connection = table_.find(packet.endpoints, number);
  const bool opening = (packet.flags & (flag_syn | flag_ack)) == flag_syn;
  if (connection != nullptr && opening) [[unlikely]] {
    const Direction& mine = connection->directions[number];
    const bool repeated = !mine.started_ || (mine.sent_syn_ && packet.sequence == mine.base_) ||
                          (!mine.sent_syn_ && packet.sequence + 1 == mine.base_);
    if (!repeated) connection = nullptr;
  }
  if (connection == nullptr) [[unlikely]] {
    const bool answer = (packet.flags & (flag_syn | flag_ack)) == (flag_syn | flag_ack);
    connection = &table_.add(answer ? packet.endpoints.turned() : packet.endpoints);
    number = connection->endpoints[0] == packet.endpoints ? 0 : 1;
  }

  Seen seen;
  seen.connection = connection->number;
  seen.direction = static_cast<std::uint8_t>(number);
  Direction& mine = connection->directions[number];
  const std::int64_t now = packet.time_ns;
  const bool inside = now >= options_.start_ns && now < options_.end_ns;
  if (mine.packets() == 0) {
    mine.first_ns = mine.last_ns = now;
  } else {
    mine.last_ns = std::max(mine.last_ns, now);
  }
  Counts& counts = mine.counts[inside ? 1 : 0];
  ++counts.packets;
  counts.ip_bytes += packet.ip_bytes;
  if (packet.payload != 0) {
    if (mine.counts[0].data_packets + mine.counts[1].data_packets == 0) {
      mine.first_data_ns = mine.last_data_ns = now;
    } else {
      mine.last_data_ns = std::max(mine.last_data_ns, now);
    }
    ++counts.data_packets;
    counts.payload_bytes += packet.payload;
  }
  if (packet.endpoints.protocol() == protocol_tcp) [[likely]] {
    add_tcp(packet, *connection, number, seen);
  } else {
    seen.new_bytes = packet.payload;
    counts.first_time_bytes += packet.payload;
    if (SeriesRow* at = row(mine, now)) {
      at->payload_bytes += packet.payload;
      at->first_time_bytes += packet.payload;
    }
  }
  return seen;
}

inline void Engine::add_tcp(const Packet& packet, Connection& connection, unsigned number,
                            Seen& seen) {
  Direction& mine = connection.directions[number];
  Direction& other = connection.directions[1 - number];
  const std::int64_t now = packet.time_ns;
  const bool inside = now >= options_.start_ns && now < options_.end_ns;
  Counts& counts = mine.counts[inside ? 1 : 0];
  const std::uint8_t flags = packet.flags;

  if ((flags & flag_rst) != 0) [[unlikely]] {
    ++mine.rst_packets;
    if (mine.started_) seen.sequence = mine.unwrap(packet.sequence);
    if ((flags & flag_ack) != 0 && other.has_base_) {
      seen.acknowledgement = other.unwrap(packet.acknowledgement);
    }
    seen.window = packet.window;
    if (SeriesRow* at = row(mine, now)) at->payload_bytes += packet.payload;
    return;
  }
  if (!mine.started_) [[unlikely]] {
    // An acknowledgement may have said where it stands.
    if (mine.acked_ != Direction::unknown) {
      const std::uint32_t acked = mine.base_ + static_cast<std::uint32_t>(mine.acked_);
      mine.acked_ = static_cast<std::int32_t>(acked - packet.sequence);
    }
    mine.base_ = packet.sequence;
    mine.has_base_ = mine.started_ = true;
    mine.next_ = mine.low_ = 0;
  }
  const std::int64_t begin = mine.unwrap(packet.sequence);
  seen.sequence = begin;
  const bool special = (flags & (flag_syn | flag_fin)) != 0;
  if ((flags & flag_syn) != 0) [[unlikely]] {
    open(packet, mine, other);
  }

  SeriesRow* const at = row(mine, now);
  bool probing = false;
  bool segment = special;
  if (packet.payload <= 1 && begin == mine.next_ - 1 && !special) [[unlikely]] {
    // A probe: of a closed window, or whether the other side is still there.
    const bool closed = other.last_window_ == 0;
    const bool all_acknowledged =
        mine.acked_ == Direction::unknown ? packet.payload == 0 : mine.acked_ >= mine.next_;
    probing = closed || all_acknowledged;
    if (probing) ++(closed ? mine.window_probes : mine.keep_alives);
  }
  if (probing) [[unlikely]] {
    if (at != nullptr) at->payload_bytes += packet.payload;
  } else if (packet.payload != 0 || special) {
    segment = true;
    bool repeated = false;
    bool fills = false;
    if ((flags & flag_syn) != 0) [[unlikely]] {
      repeated = begin < mine.next_;
      if (!repeated) mine.see(begin, begin + 1);
    }
    const std::int64_t from = begin + ((flags & flag_syn) != 0 ? 1 : 0);
    const std::int64_t to = from + packet.payload;
    const std::int64_t next = mine.next_;
    if (packet.payload == 1 && from == next && other.last_window_ == 0) ++mine.window_probes;
    if (packet.payload != 0) [[likely]] {
      const std::int64_t fresh = mine.see(from, to);
      seen.new_bytes = static_cast<std::uint32_t>(fresh);
      counts.first_time_bytes += fresh;
      if (from < next) [[unlikely]] {
        repeated = true;
        if (fresh < packet.payload) {
          seen.retransmission = true;
          ++counts.retransmitted_packets;
          counts.retransmitted_bytes += packet.payload - fresh;
        } else {
          ++counts.out_of_order_packets;
          fills = to <= next;
        }
      }
      if (at != nullptr) {
        at->payload_bytes += packet.payload;
        at->first_time_bytes += fresh;
        if (seen.retransmission) ++at->retransmitted_packets;
      }
    }
    if ((flags & flag_fin) != 0) [[unlikely]] {
      ++mine.fin_packets;
      if (to < mine.next_) {
        repeated = true;
      } else {
        mine.see(to, to + 1);
      }
    }
    if (repeated && to >= mine.acked_) [[unlikely]] {
      // An acknowledgement above its begin may be of it, or have waited for it, until something is
      // acknowledged that was sent later.
      while (!mine.outstanding_.empty() && mine.outstanding_.back().end > begin) {
        mine.outstanding_.pop_back();
      }
      remember(mine.outstanding_, {begin + 1, Direction::unknown},
               mine.acked_ != Direction::unknown);
    }
    if (!repeated || fills) [[likely]] {
      remember(mine.outstanding_, {fills ? to : mine.next_, now},
               mine.acked_ != Direction::unknown);
    }
    if (packet.payload != 0 && mine.acked_ != Direction::unknown) {
      const std::int64_t in_flight = std::max<std::int64_t>(0, mine.next_ - mine.acked_);
      if (inside) mine.in_flight.add(in_flight);
      if (at != nullptr) at->in_flight_most = std::max(at->in_flight_most, in_flight);
    }
  }

  if ((flags & flag_ack) != 0) [[likely]] {
    acknowledge(packet, mine, other, inside, probing || segment, seen);
    if (!connection.complete_handshake && mine.sent_syn_ && other.sent_syn_ack_ &&
        (flags & flag_syn) == 0 && seen.acknowledgement >= 1) [[unlikely]] {
      connection.complete_handshake = true;
    }
  }
  if (packet.has_timestamps) stamp(packet, mine, other, segment, inside);
  if (packet.sack_blocks != 0) {
    ++mine.sack_packets;
    mine.sack_blocks += packet.sack_blocks;
  }
  if ((flags & flag_syn) == 0) [[likely]] {
    seen.window = static_cast<std::int64_t>(packet.window) << mine.shift_;
    mine.last_window_ = packet.window;
    if (packet.window == 0) ++mine.zero_window_packets;
    if (inside) mine.window.add(seen.window);
    if (at != nullptr) at->window = seen.window;
  } else {
    seen.window = packet.window;
  }
}

void Engine::open(const Packet& packet, Direction& mine, Direction& other) {
  ++mine.syn_packets;
  ((packet.flags & flag_ack) != 0 ? mine.sent_syn_ack_ : mine.sent_syn_) = true;
  mine.low_ = Direction::unknown;  // there is nothing before a SYN
  if (packet.mss != 0) mine.mss = packet.mss;
  if (packet.window_scale >= 0) mine.window_scale = packet.window_scale;
  mine.sack_permitted = mine.sack_permitted || packet.sack_permitted;
  // Scaled if both sides say so (RFC 7323, section 2.2); one may not be in the capture.
  const bool refused = other.syn_packets != 0 && other.window_scale < 0;
  const bool mine_scaled = mine.window_scale >= 0 && !refused;
  mine.shift_ = static_cast<std::uint8_t>(mine_scaled ? mine.window_scale : 0);
  const bool other_scaled = other.window_scale >= 0 && mine.window_scale >= 0;
  other.shift_ = static_cast<std::uint8_t>(other_scaled ? other.window_scale : 0);
}

inline void Engine::acknowledge(const Packet& packet, Direction& mine, Direction& other,
                                bool inside, bool probing, Seen& seen) {
  if (!other.has_base_) [[unlikely]] {
    other.base_ = packet.acknowledgement;
    other.has_base_ = true;
  }
  const std::int64_t number = other.unwrap(packet.acknowledgement);
  seen.acknowledgement = number;
  if (number > other.acked_) {
    other.acked_ = number;
    if (!other.started_) other.next_ = number;
    const Direction::Segment* newest = nullptr;
    while (!other.outstanding_.empty() && other.outstanding_.front().end <= number) {
      newest = &other.outstanding_.front();
      other.outstanding_.pop();
    }
    if (newest != nullptr && newest->time_ns != Direction::unknown) {
      const std::int64_t rtt = packet.time_ns - newest->time_ns;
      if (inside && rtt >= 0) other.rtt_sequence.add(rtt);
      if (options_.interval_ns != 0 && !other.timestamps && rtt >= 0) {
        SeriesRow* const at = row(other, packet.time_ns);
        ++at->rtt_count;
        at->rtt_sum += static_cast<double>(rtt);
        at->rtt_most = std::max(at->rtt_most, rtt);
      }
    }
  } else if (number == other.acked_ && !probing && packet.payload == 0 &&
             packet.window == mine.last_window_ && other.next_ > number) {
    ++mine.duplicate_acks;
  }
}

inline void Engine::stamp(const Packet& packet, Direction& mine, Direction& other, bool segment,
                          bool inside) {
  const std::int64_t now = packet.time_ns;
  if (!mine.timestamps || static_cast<std::int32_t>(packet.tsval - mine.last_stamp_) > 0) {
    mine.timestamps = true;
    mine.last_stamp_ = packet.tsval;
    mine.last_stamp_ns_ = now;
    mine.stamp_waits_ = false;
  }
  if (segment && !mine.stamp_waits_ && packet.tsval == mine.last_stamp_) {
    remember(mine.stamps_, {mine.last_stamp_ns_, packet.tsval}, other.packets() != 0);
    mine.stamp_waits_ = true;
  }
  if ((packet.flags & flag_ack) == 0 || packet.tsecr == mine.last_echo_) return;
  mine.last_echo_ = packet.tsecr;
  while (!other.stamps_.empty()) {
    const Direction::Stamp first = other.stamps_.front();
    const auto older = static_cast<std::int32_t>(packet.tsecr - first.value);
    if (older < 0) break;
    other.stamps_.pop();
    if (older > 0) continue;
    const std::int64_t rtt = now - first.time_ns;
    if (rtt < 0) break;
    if (inside) other.rtt_timestamps.add(rtt);
    if (options_.interval_ns != 0) {
      SeriesRow* const at = row(other, now);
      ++at->rtt_count;
      at->rtt_sum += static_cast<double>(rtt);
      at->rtt_most = std::max(at->rtt_most, rtt);
    }
    break;
  }
}

/// Queues what waits for an answer. Where none has ever come (a capture of one direction only), and
/// where all connections together have too much of it, the oldest is forgotten instead.
template <typename T>
inline void Engine::remember(Ring<T>& ring, const T& value, bool answered) {
  if (ring.full()) [[unlikely]] {
    const std::size_t more = ring.capacity() == 0 ? 16 : ring.capacity();
    const bool may_grow = ring.capacity() < 64 || answered;
    if (ring.capacity() == 0 || (may_grow && outstanding_ + more <= max_outstanding)) {
      ring.grow();
      outstanding_ += more;
    } else {
      ring.pop();
    }
  }
  ring.push(value);
}

/// The direction's row of the interval that a time is in; null if there are no series.
inline SeriesRow* Engine::row(Direction& direction, std::int64_t time_ns) {
  if (options_.interval_ns == 0) [[likely]] {
    return nullptr;
  }
  const std::int64_t since = time_ns - origin_ns_;
  std::int64_t index = since / options_.interval_ns;
  if (since < 0 && index * options_.interval_ns != since) --index;
  if (!direction.series.empty() && direction.series.back().index == index) [[likely]] {
    return &direction.series.back();
  }
  return new_row(direction, index);
}

SeriesRow* Engine::new_row(Direction& direction, std::int64_t index) {
  auto& rows = direction.series;
  auto place = rows.end();  // mostly; times that go back are rare
  while (place != rows.begin() && std::prev(place)->index > index) --place;
  if (place != rows.begin() && std::prev(place)->index == index) return &*std::prev(place);
  SeriesRow fresh;
  fresh.index = index;
  return &*rows.insert(place, fresh);
}

bool scan_some(CaptureFile& file, Engine& engine, Totals& totals, std::int64_t most) {
  Record record;
  Packet packet;
  for (std::int64_t i = 0; i < most; ++i) {
    if (!file.next(record)) return false;
    ++totals.packets;
    totals.bytes += record.length;
    totals.first_ns = std::min(totals.first_ns, record.time_ns);
    totals.last_ns = std::max(totals.last_ns, record.time_ns);
    const Unused unused = decode(record, packet);
    if (unused == Unused::none) [[likely]] {
      engine.add(packet);
    } else {
      ++totals.unused[static_cast<std::size_t>(unused)];
    }
  }
  return true;
}

}  // namespace nagi::captures
