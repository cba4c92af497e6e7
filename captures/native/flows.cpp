// SPDX-License-Identifier: Apache-2.0
#include "native/flows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nagi::captures {

namespace {

void add_sample(std::unique_ptr<Distribution>& samples, std::int64_t value) {
  if (!samples) [[unlikely]]
    samples = std::make_unique<Distribution>();
  samples->add(value);
}

}  // namespace

/// Mark the numbers in [begin, end) as captured. Return how many of them are new.
std::int64_t Direction::add_interval(std::int64_t begin, std::int64_t end) {
  if (begin == next_) [[likely]] {
    next_ = end;
    return end - begin;
  }
  if (begin > next_) {
    add_hole(holes_.size(), {next_, begin});
    next_ = end;
    return end - begin;
  }
  std::int64_t fresh = close_hole(begin, std::min(end, next_));
  if (end > next_) {
    fresh += end - next_;
    next_ = end;
  }
  return fresh;
}

/// Remove [begin, end) from the holes. Return by how many bytes the holes became smaller.
std::int64_t Direction::close_hole(std::int64_t begin, std::int64_t end) {
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

void Direction::add_hole(std::size_t slot, Hole hole) {
  holes_.insert(holes_.begin() + static_cast<std::ptrdiff_t>(slot), hole);
  if (holes_.size() > max_holes) holes_.erase(holes_.begin());
}

/// Count a packet with payload. `outstanding` says whether some of its bytes are unacknowledged.
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

/// Return whether the same packet has been captured before, at another point of the path or as a
/// frame that the link layer sent again. Copies agree in connection, direction, identification,
/// sequence and acknowledgement number, flags, payload and checksum. TCP's retransmissions and
/// repeated ACKs may agree, too, if the sender does not increment identifications. Then a packet is
/// a copy only if its hop limit is lower (a router forwarded it), if the link layer marks its frame
/// as repeated, if it is a SYN repeated earlier than TCP would, or data repeated almost at once.
bool Engine::is_copy(const Packet& packet, const Classification& result, Connection& connection,
                     Direction& direction) {
  constexpr std::int64_t longest_delay_of_copy_ns = 4'000'000'000;
  constexpr std::int64_t shortest_rto_ns = 200'000'000;
  // Copies with a larger difference of times were captured at several points.
  constexpr std::int64_t apart_ns = 1'000'000;
  constexpr std::int64_t longest_delay_of_data_copy_ns = 100'000;
  const auto mix = [](std::uint64_t state, std::uint64_t value) {
    state = (state ^ value) * 0x9e3779b97f4a7c15;
    return state ^ (state >> 32);
  };
  std::uint64_t fingerprint = mix(2 * std::uint64_t{result.connection} + result.direction + 1,
                                  std::uint64_t{packet.sequence} << 32 | packet.acknowledgement);
  fingerprint =
      mix(fingerprint, std::uint64_t{packet.identification} << 48 |
                           std::uint64_t{packet.checksum} << 32 |
                           std::uint64_t{packet.flags} << 24 | (packet.payload & 0xffffff));
  // A bucket is one cache line. A new fingerprint replaces the oldest one in its bucket.
  Fingerprint* const bucket =
      &fingerprints_[(fingerprint >> 8 & (max_fingerprints / bucket_fingerprints - 1)) *
                     bucket_fingerprints];
  Fingerprint* entry = bucket;
  bool is_known = false;
  for (Fingerprint* each = bucket; each != bucket + bucket_fingerprints; ++each) {
    if ((each->value ^ fingerprint) >> 8 == 0) [[unlikely]] {
      entry = each;
      is_known = true;
      break;
    }
    if (each->time_ns < entry->time_ns) entry = each;
  }
  const Fingerprint now{(fingerprint & ~std::uint64_t{0xff}) | packet.hops, packet.time_ns};
  const std::int64_t since_ns = is_known ? packet.time_ns - entry->time_ns : -1;
  if (since_ns < 0 || since_ns > longest_delay_of_copy_ns) [[likely]] {
    *entry = now;
    if (packet.identification != direction.last_identification_) {
      direction.last_identification_ = packet.identification;
      if (direction.counts.packets != 0) ++direction.identifications_;
    }
    return false;
  }
  const unsigned hops_before = entry->value & 0xff;
  const bool has_identifications =
      packet.identification != 0 && direction.identifications_ != 0 &&
      2 * std::int64_t{direction.identifications_} >= direction.counts.packets;
  const bool is_before_rto = since_ns < shortest_rto_ns;
  const bool copy = has_identifications || packet.hops < hops_before ||
                    (packet.resent_frame && is_before_rto) ||
                    ((packet.flags & flag_syn) != 0 && is_before_rto) ||
                    (packet.payload != 0 && since_ns <= longest_delay_of_data_copy_ns);
  if (!copy) {
    *entry = now;
  } else if (since_ns > apart_ns && !packet.resent_frame) {
    connection.captured_at_several_points = true;
  }
  return copy;
}

Classification Engine::add(const Packet& packet) {
  const std::int64_t now = packet.time_ns;
  if (!has_origin_) [[unlikely]] {
    set_origin(now);
  }
  unsigned number = 0;
  Connection& connection = tracker_.find(packet, now, number);
  Classification result;
  result.connection = connection.number;
  result.direction = static_cast<std::uint8_t>(number);
  auto& slot = connection.directions[number];
  if (!slot) [[unlikely]] {
    slot = std::make_unique<Direction>();
  }
  Direction& direction = *slot;
  if (is_copy(packet, result, connection, direction)) [[unlikely]] {
    ++direction.captured_twice;
    result.copy = true;
    return result;
  }
  const bool inside = now >= options_.start_ns && now < options_.end_ns;
  Counts& counts = direction.counts;
  Counts before;
  if (!inside) before = counts;
  if (counts.packets == 0) {
    direction.first_ns = direction.last_ns = now;
  } else {
    direction.first_ns = std::min(direction.first_ns, now);
    direction.last_ns = std::max(direction.last_ns, now);
  }
  ++counts.packets;
  counts.ip_bytes += packet.ip_bytes;
  if (packet.endpoints.protocol() == protocol_tcp) [[likely]] {
    add_tcp(packet, connection, number, inside, result);
  } else {
    if (packet.payload != 0) direction.add_data(now, packet.payload, true);
    result.new_bytes = packet.payload;
    counts.first_time_bytes += packet.payload;
    if (SeriesRow* interval = series_row(direction, now)) {
      interval->payload_bytes += packet.payload;
      interval->first_time_bytes += packet.payload;
    }
  }
  if (!inside) direction.count_outside(before);
  return result;
}

/// Count a byte that was sent while the window was 0, and that has now been acknowledged.
void Engine::accept_probe(Direction& direction, bool inside) {
  const std::int64_t byte = std::exchange(direction.probe_, Direction::unknown);
  const Counts before = direction.counts;
  if (direction.has_seen(byte + 1) || direction.add_interval(byte, byte + 1) == 0) return;
  direction.add_data(direction.probe_ns_, 1, true);
  ++direction.counts.first_time_bytes;
  if (SeriesRow* interval = series_row(direction, direction.probe_ns_)) {
    ++interval->payload_bytes;
    ++interval->first_time_bytes;
  }
  if (!inside) direction.count_outside(before);
}

/// Process a TCP packet: count it, classify it, and measure round-trip times.
inline void Engine::add_tcp(const Packet& packet, Connection& connection, unsigned number,
                            bool inside, Classification& result) {
  Direction& direction = *connection.directions[number];
  const std::int64_t now = packet.time_ns;
  Counts& counts = direction.counts;
  const std::uint8_t flags = packet.flags;
  // After a SYN without ACK, nothing is known about the other direction, so it is not allocated.
  auto& slot = connection.directions[1 - number];
  if (!slot && (flags & flag_ack) != 0) [[unlikely]] {
    slot = std::make_unique<Direction>();
  }
  Direction& opposite = slot ? *slot : blank_;

  if ((flags & flag_rst) != 0) [[unlikely]] {
    ++direction.rst_packets;
    if (direction.started_) result.sequence = direction.unwrap(packet.sequence);
    if ((flags & flag_ack) != 0 && opposite.has_base_) {
      result.acknowledgement = opposite.unwrap(packet.acknowledgement);
    }
    result.window = packet.window;
    return;
  }
  if (!direction.started_) [[unlikely]] {
    // An earlier acknowledgement may have set base_, relative to which acked_ is converted.
    if (direction.acked_ != Direction::unknown) {
      const std::uint32_t acked = direction.base_ + static_cast<std::uint32_t>(direction.acked_);
      direction.acked_ = static_cast<std::int32_t>(acked - packet.sequence);
    }
    direction.base_ = packet.sequence;
    direction.has_base_ = direction.started_ = true;
    direction.next_ = direction.low_ = 0;
  }
  if (direction.rivals_ && (flags & flag_syn) == 0) [[unlikely]] {
    select_syn_ack(packet.sequence, connection, number, direction, opposite);
  }
  if ((flags & (flag_syn | flag_ack)) == (flag_syn | flag_ack) &&
      packet.sequence != direction.base_ &&
      handle_further_syn_ack(packet, connection, number, direction, opposite)) [[unlikely]] {
    result.window = packet.window;
    return;
  }
  const std::int64_t begin = direction.unwrap(packet.sequence);
  result.sequence = begin;
  const bool is_syn_or_fin = (flags & (flag_syn | flag_fin)) != 0;
  if ((flags & flag_syn) != 0) [[unlikely]] {
    add_syn(packet, connection, number, direction, opposite);
  }

  SeriesRow* const interval = series_row(direction, now);
  bool is_probe = false;
  bool is_segment = is_syn_or_fin;
  if (packet.payload <= 1 && !is_syn_or_fin &&
      (begin == direction.next_ - 1 || begin == direction.next_)) [[unlikely]] {
    // A probe of a closed window, or a keep-alive.
    const bool closed = opposite.last_window_ == 0;
    const bool all_acknowledged = direction.acked_ == Direction::unknown
                                      ? packet.payload == 0
                                      : direction.acked_ >= direction.next_;
    const bool is_old_byte = begin < direction.next_;
    result.probe = is_probe =
        is_old_byte ? closed || all_acknowledged : closed && packet.payload == 1;
    if (is_probe) ++(closed ? direction.window_probes : direction.keep_alives);
    if (is_probe && !is_old_byte) {
      direction.probe_ = begin;
      direction.probe_ns_ = now;
    }
  }
  if (!is_probe && (packet.payload != 0 || is_syn_or_fin)) {
    is_segment = true;
    bool repeated = false;  // the packet is below the highest number captured before
    bool fills = false;     // the packet fills a hole, and has no other bytes
    if ((flags & flag_syn) != 0) [[unlikely]] {
      repeated = begin < direction.next_;
      if (!repeated) direction.add_interval(begin, begin + 1);
    }
    const std::int64_t from = begin + ((flags & flag_syn) != 0 ? 1 : 0);
    const std::int64_t to = from + packet.payload;
    const std::int64_t next = direction.next_;
    if (packet.payload != 0) [[likely]] {
      const std::int64_t fresh = direction.add_interval(from, to);
      direction.add_data(now, packet.payload, fresh != 0 || to > direction.acked_);
      result.new_bytes = static_cast<std::uint32_t>(fresh);
      counts.first_time_bytes += fresh;
      if (from < next) [[unlikely]] {
        repeated = true;
        if (fresh < packet.payload) {
          result.retransmission = true;
          ++counts.retransmitted_packets;
          counts.retransmitted_bytes += packet.payload - fresh;
        } else {
          result.out_of_order = true;
          ++counts.out_of_order_packets;
          fills = to <= next;
        }
      }
      if (interval != nullptr) {
        interval->payload_bytes += packet.payload;
        interval->first_time_bytes += fresh;
        if (result.retransmission) ++interval->retransmitted_packets;
      }
    }
    if ((flags & flag_fin) != 0) [[unlikely]] {
      ++direction.fin_packets;
      direction.fin_seen_ = true;
      if (to < direction.next_) {
        repeated = true;
      } else {
        direction.add_interval(to, to + 1);
      }
    }
    if (repeated && to >= direction.acked_) [[unlikely]] {
      // An ACK above `begin` may be for either copy, so the next sample is of data sent after this.
      while (!direction.outstanding_.empty() && direction.outstanding_.back().end > begin) {
        direction.outstanding_.pop_back();
      }
      append(direction.outstanding_, {begin + 1, Direction::unknown},
             direction.acked_ != Direction::unknown);
    }
    if (!repeated || fills) [[likely]] {
      append(direction.outstanding_, {fills ? to : direction.next_, now},
             direction.acked_ != Direction::unknown);
    }
    if (packet.payload != 0 && direction.acked_ != Direction::unknown) {
      const std::int64_t in_flight = std::max<std::int64_t>(0, direction.next_ - direction.acked_);
      result.in_flight = in_flight;
      if (inside) direction.in_flight.add(in_flight);
      if (interval != nullptr)
        interval->max_in_flight = std::max(interval->max_in_flight, in_flight);
    }
  }

  if ((flags & flag_ack) != 0) [[likely]] {
    if (opposite.rivals_) [[unlikely]] {
      select_syn_ack(packet.acknowledgement, connection, 1 - number, opposite, direction);
    }
    acknowledge(packet, direction, opposite, inside, is_probe || is_segment, result);
    if (!connection.complete_handshake && direction.sent_syn_ && opposite.sent_syn_ack_ &&
        (flags & flag_syn) == 0 && result.acknowledgement >= 1) [[unlikely]] {
      connection.complete_handshake = true;
      if (connection.handshake) connection.handshake->ack_ns = now;
    }
  }
  if (packet.has_timestamps)
    add_timestamps(packet, direction, opposite, is_segment, inside, result);
  if (packet.sack_blocks != 0) {
    ++direction.sack_packets;
    direction.sack_blocks += packet.sack_blocks;
    for (std::size_t i = 0; i < packet.sack_edges; ++i) {
      result.sack[i] = opposite.unwrap(packet.sack[i]);
    }
  }
  if ((flags & flag_syn) == 0) [[likely]] {
    // The scale of a window is known only if both SYNs, or one SYN without the option, are known.
    const bool scale_known =
        (direction.has_whole_syn_ && direction.window_scale < 0) ||
        (opposite.has_whole_syn_ && (opposite.window_scale < 0 || direction.has_whole_syn_));
    result.window = static_cast<std::int64_t>(packet.window) << direction.shift_;
    direction.last_window_ = packet.window;
    if (packet.window == 0) ++direction.zero_window_packets;
    if (inside && scale_known) direction.window.add(result.window);
    if (interval != nullptr) interval->window = result.window;
  } else {
    result.window = packet.window;
  }
}

/// Process the acknowledgement of a packet: take a round-trip time by sequence of the `opposite`
/// direction, or count a duplicate ACK.
inline void Engine::acknowledge(const Packet& packet, Direction& direction, Direction& opposite,
                                bool inside, bool is_segment_or_probe, Classification& result) {
  if (!opposite.has_base_) [[unlikely]] {
    opposite.base_ = packet.acknowledgement;
    opposite.has_base_ = true;
  }
  const std::int64_t number = opposite.unwrap(packet.acknowledgement);
  result.acknowledgement = number;
  if (number > opposite.acked_) {
    opposite.acked_ = number;
    if (opposite.probe_ != Direction::unknown && number > opposite.probe_) [[unlikely]] {
      accept_probe(opposite, inside);
    }
    if (!opposite.started_) opposite.next_ = number;
    const Direction::Segment* newest = nullptr;
    while (!opposite.outstanding_.empty() && opposite.outstanding_.front().end <= number) {
      newest = &opposite.outstanding_.front();
      opposite.outstanding_.pop();
    }
    if (newest != nullptr && newest->time_ns != Direction::unknown &&
        (newest->end == number || opposite.has_seen(number))) {
      const std::int64_t rtt = packet.time_ns - newest->time_ns;
      result.rtt_sequence_ns = rtt;
      if (inside && rtt >= 0) add_sample(opposite.rtt_sequence, rtt);
      if (options_.interval_ns != 0 && !opposite.timestamps && rtt >= 0) {
        SeriesRow* const interval = series_row(opposite, packet.time_ns);
        ++interval->rtt_count;
        interval->rtt_sum += static_cast<double>(rtt);
        interval->max_rtt = std::max(interval->max_rtt, rtt);
      }
    }
  } else if (number == opposite.acked_ && !is_segment_or_probe && packet.payload == 0 &&
             packet.window == direction.last_window_ && opposite.next_ > number) {
    ++direction.duplicate_acks;
    result.duplicate_ack = true;
  }
}

/// Process the timestamps of a packet: store the TSval of a segment, and take a round-trip time by
/// timestamps of the `opposite` direction from the TSecr.
inline void Engine::add_timestamps(const Packet& packet, Direction& direction, Direction& opposite,
                                   bool is_segment, bool inside, Classification& result) {
  const std::int64_t now = packet.time_ns;
  direction.timestamps = true;
  if (is_segment) {
    const std::int64_t begin = result.sequence;
    const std::int64_t end = begin + packet.sequence_length();
    if (!direction.has_stamp_ ||
        static_cast<std::int32_t>(packet.tsval - direction.last_stamp_) > 0) {
      direction.has_stamp_ = true;
      direction.last_stamp_ = packet.tsval;
      append(direction.stamps_, {now, begin, end, end, packet.tsval}, opposite.counts.packets != 0);
    } else if (!direction.stamps_.empty() && direction.stamps_.back().value == packet.tsval) {
      Direction::Stamp& last = direction.stamps_.back();
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
  while (!opposite.stamps_.empty()) {
    const Direction::Stamp first = opposite.stamps_.front();
    const auto older = static_cast<std::int32_t>(packet.tsecr - first.value);
    if (older < 0 || (older == 0 && result.acknowledgement < first.end)) break;
    opposite.stamps_.pop();
    if (older > 0) continue;
    const std::int64_t rtt = now - first.time_ns;
    if (first.time_ns == Direction::unknown || rtt < 0) break;
    result.rtt_timestamps_ns = rtt;
    if (inside) add_sample(opposite.rtt_timestamps, rtt);
    if (options_.interval_ns != 0) {
      SeriesRow* const interval = series_row(opposite, now);
      ++interval->rtt_count;
      interval->rtt_sum += static_cast<double>(rtt);
      interval->max_rtt = std::max(interval->max_rtt, rtt);
    }
    break;
  }
}

/// Append a segment or timestamp without an answer to a ring. A full ring grows, but drops its
/// oldest element if no answer was ever captured (`answered`), or if all rings are too large.
template <typename T>
inline void Engine::append(Ring<T>& ring, const T& value, bool answered) {
  if (ring.full()) [[unlikely]] {
    const std::size_t more = ring.capacity() == 0 ? Ring<T>::min_capacity : ring.capacity();
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

/// Return the direction's row for the interval that contains a time, or null without series.
inline SeriesRow* Engine::series_row(Direction& direction, std::int64_t time_ns) {
  if (options_.interval_ns == 0) [[likely]] {
    return nullptr;
  }
  const std::int64_t since = time_ns - origin_ns_;
  std::int64_t index = since / options_.interval_ns;
  if (since < 0 && index * options_.interval_ns != since) --index;
  if (!direction.series.empty() && direction.series.back().index == index) [[likely]] {
    return &direction.series.back();
  }
  return add_series_row(direction, index);
}

}  // namespace nagi::captures
