// SPDX-License-Identifier: Apache-2.0
#include "native/flows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nagi::captures {

namespace {

void add_sample(std::unique_ptr<Distribution>& samples, std::int64_t value) {
  if (!samples) [[unlikely]] {
    samples = std::make_unique<Distribution>();
  }
  samples->add(value);
}

}  // namespace

// ---------------------------------------------------------------------------------- sequence space

/// Mark [begin, end) as seen. Return how many of its bytes are new.
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

/// Remove [begin, end) from the holes. Return how many bytes the holes lost.
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
  if (hole != holes_.end() && hole->begin < begin && hole->end > end) {  // inside one hole
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

/// Count a packet with payload. `outstanding`: its bytes have not been acknowledged.
void Direction::add_data(std::int64_t time_ns, std::uint32_t payload, bool outstanding) {
  if (counts.data_packets == 0) first_data_ns = last_data_ns = time_ns;
  first_data_ns = std::min(first_data_ns, time_ns);
  if (outstanding) {
    last_data_ns = std::max(last_data_ns, time_ns);
    ip_bytes_to_data = counts.ip_bytes;
  }
  ++counts.data_packets;
  counts.payload_bytes += payload;
}

// ------------------------------------------------------------------------------------------ engine

/// Return whether the same packet has been captured before, at another point of the path or as a
/// frame that the link layer sent again. Packets are the same if they agree in connection and
/// direction, identification, sequence and acknowledgement number, flags, payload and checksum.
/// TCP's retransmissions and repeated acknowledgements may agree in these as well, unless their
/// sender increments identifications (IPv6 has none, and a sender may leave them constant). Without
/// identifications, a packet is a copy if its hop limit is lower (a router forwarded it), if the
/// link layer marks its frame as repeated, if it is a SYN that is repeated sooner than TCP would,
/// or if it is data that is repeated almost at once.
bool Engine::is_copy(const Packet& packet, const Seen& seen, Connection& connection,
                     Direction& mine) {
  constexpr std::int64_t longest_way_ns = 4'000'000'000;
  constexpr std::int64_t shortest_rto_ns = 200'000'000;
  constexpr std::int64_t apart_ns = 1'000'000;
  constexpr std::int64_t moment_ns = 100'000;
  const auto mix = [](std::uint64_t state, std::uint64_t value) {
    state = (state ^ value) * 0x9e3779b97f4a7c15;
    return state ^ (state >> 32);
  };
  std::uint64_t print = mix(2 * std::uint64_t{seen.connection} + seen.direction + 1,
                            std::uint64_t{packet.sequence} << 32 | packet.acknowledgement);
  print =
      mix(print, std::uint64_t{packet.identification} << 48 | std::uint64_t{packet.checksum} << 32 |
                     std::uint64_t{packet.flags} << 24 | (packet.payload & 0xffffff));
  // A bucket is one cache line. The oldest fingerprint is overwritten.
  Print* const bucket = &prints_[(print >> 8 & (prints / bucket_prints - 1)) * bucket_prints];
  Print* last = bucket;
  bool same = false;
  for (Print* each = bucket; each != bucket + bucket_prints; ++each) {
    if ((each->value ^ print) >> 8 == 0) [[unlikely]] {
      last = each;
      same = true;
      break;
    }
    if (each->time_ns < last->time_ns) last = each;
  }
  const Print now{(print & ~std::uint64_t{0xff}) | packet.hops, packet.time_ns};
  const std::int64_t since = same ? packet.time_ns - last->time_ns : -1;
  if (since < 0 || since > longest_way_ns) [[likely]] {
    *last = now;
    if (packet.identification != mine.last_identification_) {
      mine.last_identification_ = packet.identification;
      if (mine.counts.packets != 0) ++mine.identifications_;
    }
    return false;
  }
  const unsigned last_hops = last->value & 0xff;
  const bool counted = packet.identification != 0 && mine.identifications_ != 0 &&
                       2 * std::int64_t{mine.identifications_} >= mine.counts.packets;
  const bool soon = since < shortest_rto_ns;
  const bool copy = counted || packet.hops < last_hops || (packet.resent_frame && soon) ||
                    ((packet.flags & flag_syn) != 0 && soon) ||
                    (packet.payload != 0 && since <= moment_ns);
  if (!copy) {
    *last = now;
  } else if (since > apart_ns && !packet.resent_frame) {
    connection.copied_apart = true;
  }
  return copy;
}

Seen Engine::add(const Packet& packet) {
  const std::int64_t now = packet.time_ns;
  if (!has_origin_) [[unlikely]] {
    begin(now);
  }
  unsigned number = 0;
  Connection& connection = tracker_.find(packet, now, number);
  Seen seen;
  seen.connection = connection.number;
  seen.direction = static_cast<std::uint8_t>(number);
  auto& place = connection.directions[number];
  if (!place) [[unlikely]] {
    place = std::make_unique<Direction>();
  }
  Direction& mine = *place;
  if (is_copy(packet, seen, connection, mine)) [[unlikely]] {
    ++mine.captured_twice;
    seen.copy = true;
    return seen;
  }
  const bool inside = now >= options_.start_ns && now < options_.end_ns;
  Counts& counts = mine.counts;
  Counts before;
  if (!inside) before = counts;
  if (counts.packets == 0) {
    mine.first_ns = mine.last_ns = now;
  } else {
    mine.first_ns = std::min(mine.first_ns, now);
    mine.last_ns = std::max(mine.last_ns, now);
  }
  ++counts.packets;
  counts.ip_bytes += packet.ip_bytes;
  if (packet.endpoints.protocol() == protocol_tcp) [[likely]] {
    add_tcp(packet, connection, number, inside, seen);
  } else {
    if (packet.payload != 0) mine.add_data(now, packet.payload, true);
    seen.new_bytes = packet.payload;
    counts.first_time_bytes += packet.payload;
    if (SeriesRow* at = row(mine, now)) {
      at->payload_bytes += packet.payload;
      at->first_time_bytes += packet.payload;
    }
  }
  if (!inside) mine.leave_out(before);
  return seen;
}

/// Count a byte that was sent to a closed window and has been acknowledged.
void Engine::accept_probe(Direction& direction, bool inside) {
  const std::int64_t byte = std::exchange(direction.probe_, Direction::unknown);
  const Counts before = direction.counts;
  if (direction.has_seen(byte + 1) || direction.see(byte, byte + 1) == 0) return;
  direction.add_data(direction.probe_ns_, 1, true);
  ++direction.counts.first_time_bytes;
  if (SeriesRow* at = row(direction, direction.probe_ns_)) {
    ++at->payload_bytes;
    ++at->first_time_bytes;
  }
  if (!inside) direction.leave_out(before);
}

inline void Engine::add_tcp(const Packet& packet, Connection& connection, unsigned number,
                            bool inside, Seen& seen) {
  Direction& mine = *connection.directions[number];
  const std::int64_t now = packet.time_ns;
  Counts& counts = mine.counts;
  const std::uint8_t flags = packet.flags;
  // A SYN without ACK says nothing about the other direction, which is not allocated then.
  auto& place = connection.directions[1 - number];
  if (!place && (flags & flag_ack) != 0) [[unlikely]] {
    place = std::make_unique<Direction>();
  }
  Direction& other = place ? *place : blank_;

  if ((flags & flag_rst) != 0) [[unlikely]] {
    ++mine.rst_packets;
    if (mine.started_) seen.sequence = mine.unwrap(packet.sequence);
    if ((flags & flag_ack) != 0 && other.has_base_) {
      seen.acknowledgement = other.unwrap(packet.acknowledgement);
    }
    seen.window = packet.window;
    return;
  }
  if (!mine.started_) [[unlikely]] {
    // An earlier acknowledgement may have set the numbers of this direction.
    if (mine.acked_ != Direction::unknown) {
      const std::uint32_t acked = mine.base_ + static_cast<std::uint32_t>(mine.acked_);
      mine.acked_ = static_cast<std::int32_t>(acked - packet.sequence);
    }
    mine.base_ = packet.sequence;
    mine.has_base_ = mine.started_ = true;
    mine.next_ = mine.low_ = 0;
  }
  if (mine.rivals_ && (flags & flag_syn) == 0) [[unlikely]] {
    settle(packet.sequence, connection, number, mine, other);
  }
  if ((flags & (flag_syn | flag_ack)) == (flag_syn | flag_ack) && packet.sequence != mine.base_ &&
      answers_again(packet, connection, number, mine, other)) [[unlikely]] {
    seen.window = packet.window;
    return;
  }
  const std::int64_t begin = mine.unwrap(packet.sequence);
  seen.sequence = begin;
  const bool special = (flags & (flag_syn | flag_fin)) != 0;
  if ((flags & flag_syn) != 0) [[unlikely]] {
    open(packet, connection, number, mine, other);
  }

  SeriesRow* const at = row(mine, now);
  bool probing = false;
  bool segment = special;
  if (packet.payload <= 1 && !special && (begin == mine.next_ - 1 || begin == mine.next_))
      [[unlikely]] {
    // A probe of a closed window, or a keep-alive.
    const bool closed = other.last_window_ == 0;
    const bool all_acknowledged =
        mine.acked_ == Direction::unknown ? packet.payload == 0 : mine.acked_ >= mine.next_;
    const bool old = begin < mine.next_;
    seen.probe = probing = old ? closed || all_acknowledged : closed && packet.payload == 1;
    if (probing) ++(closed ? mine.window_probes : mine.keep_alives);
    if (probing && !old) {
      mine.probe_ = begin;
      mine.probe_ns_ = now;
    }
  }
  if (!probing && (packet.payload != 0 || special)) {
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
    if (packet.payload != 0) [[likely]] {
      const std::int64_t fresh = mine.see(from, to);
      mine.add_data(now, packet.payload, fresh != 0 || to > mine.acked_);
      seen.new_bytes = static_cast<std::uint32_t>(fresh);
      counts.first_time_bytes += fresh;
      if (from < next) [[unlikely]] {
        repeated = true;
        if (fresh < packet.payload) {
          seen.retransmission = true;
          ++counts.retransmitted_packets;
          counts.retransmitted_bytes += packet.payload - fresh;
        } else {
          seen.out_of_order = true;
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
      mine.fin_seen_ = true;
      if (to < mine.next_) {
        repeated = true;
      } else {
        mine.see(to, to + 1);
      }
    }
    if (repeated && to >= mine.acked_) [[unlikely]] {
      // Until data that was sent later is acknowledged, an acknowledgement above `begin` may be of
      // either copy, or may have waited for one.
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
      seen.in_flight = in_flight;
      if (inside) mine.in_flight.add(in_flight);
      if (at != nullptr) at->in_flight_most = std::max(at->in_flight_most, in_flight);
    }
  }

  if ((flags & flag_ack) != 0) [[likely]] {
    if (other.rivals_) [[unlikely]] {
      settle(packet.acknowledgement, connection, 1 - number, other, mine);
    }
    acknowledge(packet, mine, other, inside, probing || segment, seen);
    if (!connection.complete_handshake && mine.sent_syn_ && other.sent_syn_ack_ &&
        (flags & flag_syn) == 0 && seen.acknowledgement >= 1) [[unlikely]] {
      connection.complete_handshake = true;
      if (connection.handshake) connection.handshake->ack_ns = now;
    }
  }
  if (packet.has_timestamps) stamp(packet, mine, other, segment, inside, seen);
  if (packet.sack_blocks != 0) {
    ++mine.sack_packets;
    mine.sack_blocks += packet.sack_blocks;
    for (std::size_t i = 0; i < packet.sack_edges; ++i) {
      seen.sack[i] = other.unwrap(packet.sack[i]);
    }
  }
  if ((flags & flag_syn) == 0) [[likely]] {
    // The scale of a window is known only from both SYNs, or from one SYN that offers no scaling.
    const bool scale_known =
        (mine.has_whole_syn_ && mine.window_scale < 0) ||
        (other.has_whole_syn_ && (other.window_scale < 0 || mine.has_whole_syn_));
    seen.window = static_cast<std::int64_t>(packet.window) << mine.shift_;
    mine.last_window_ = packet.window;
    if (packet.window == 0) ++mine.zero_window_packets;
    if (inside && scale_known) mine.window.add(seen.window);
    if (at != nullptr) at->window = seen.window;
  } else {
    seen.window = packet.window;
  }
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
    if (other.probe_ != Direction::unknown && number > other.probe_) [[unlikely]] {
      accept_probe(other, inside);
    }
    if (!other.started_) other.next_ = number;
    const Direction::Segment* newest = nullptr;
    while (!other.outstanding_.empty() && other.outstanding_.front().end <= number) {
      newest = &other.outstanding_.front();
      other.outstanding_.pop();
    }
    if (newest != nullptr && newest->time_ns != Direction::unknown &&
        (newest->end == number || other.has_seen(number))) {
      const std::int64_t rtt = packet.time_ns - newest->time_ns;
      seen.rtt_sequence_ns = rtt;
      if (inside && rtt >= 0) add_sample(other.rtt_sequence, rtt);
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
    seen.duplicate_ack = true;
  }
}

inline void Engine::stamp(const Packet& packet, Direction& mine, Direction& other, bool segment,
                          bool inside, Seen& seen) {
  const std::int64_t now = packet.time_ns;
  mine.timestamps = true;
  if (segment) {
    const std::int64_t begin = seen.sequence;
    const std::int64_t end = begin + packet.sequence_length();
    if (!mine.has_stamp_ || static_cast<std::int32_t>(packet.tsval - mine.last_stamp_) > 0) {
      mine.has_stamp_ = true;
      mine.last_stamp_ = packet.tsval;
      remember(mine.stamps_, {now, begin, end, end, packet.tsval}, other.counts.packets != 0);
    } else if (!mine.stamps_.empty() && mine.stamps_.back().value == packet.tsval) {
      Direction::Stamp& last = mine.stamps_.back();
      if (begin >= last.top) {
        last.top = end;
      } else if (end <= last.begin && last.time_ns != Direction::unknown) {
        last = {now, begin, end, last.top, packet.tsval};
      } else {
        last.time_ns = Direction::unknown;
      }
    }
  }
  if ((packet.flags & flag_ack) == 0) return;
  while (!other.stamps_.empty()) {
    const Direction::Stamp first = other.stamps_.front();
    const auto older = static_cast<std::int32_t>(packet.tsecr - first.value);
    if (older < 0 || (older == 0 && seen.acknowledgement < first.end)) break;
    other.stamps_.pop();
    if (older > 0) continue;
    const std::int64_t rtt = now - first.time_ns;
    if (first.time_ns == Direction::unknown || rtt < 0) break;
    seen.rtt_timestamps_ns = rtt;
    if (inside) add_sample(other.rtt_timestamps, rtt);
    if (options_.interval_ns != 0) {
      SeriesRow* const at = row(other, now);
      ++at->rtt_count;
      at->rtt_sum += static_cast<double>(rtt);
      at->rtt_most = std::max(at->rtt_most, rtt);
    }
    break;
  }
}

/// Append what waits for an answer to a ring. If no answer has ever come (a capture of one
/// direction only), or if the rings of all connections are too large, the oldest element is dropped
/// instead.
template <typename T>
inline void Engine::remember(Ring<T>& ring, const T& value, bool answered) {
  if (ring.full()) [[unlikely]] {
    const std::size_t more = ring.capacity() == 0 ? Ring<T>::least : ring.capacity();
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

/// Return the direction's row for the interval of a time, or null without series.
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

}  // namespace nagi::captures
