// SPDX-License-Identifier: Apache-2.0
#include "native/match.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

namespace nagi::captures {

namespace {

// at most this many packets of each capture are read to estimate the difference of the clocks
constexpr std::int64_t max_first_packets = 200'000;
constexpr std::size_t enough_pairs = 10'000;
constexpr std::size_t max_udp_waiting = 1 << 15;  // half the number of different identifications

}  // namespace

void Matcher::Input::step(const ClockCurve& clock, const Sizes& sizes) {
  Record record;
  if (cut_length != 0) {
    packet = rest;
    cut();
    return;
  }
  has_packet = false;
  while (!has_packet && file->next(record)) {
    file_ns = record.time_ns;
    record.time_ns = clock.common(record.time_ns);
    first_ns = std::min(first_ns, record.time_ns);
    last_ns = std::max(last_ns, record.time_ns);
    has_packet = decoder.decode(record, packet) == Unused::none;
  }
  if (sizes.empty() || !has_packet || packet.endpoints.protocol() != protocol_tcp) return;
  const auto size = sizes.find(packet.endpoints);
  if (size == sizes.end()) return;
  cut_length = size->second;
  cut();
}

Matcher::Matcher(Open open, const MatchOptions& options)
    : open_(std::move(open)), options_(options), slots_(1024) {}

bool Matcher::work(std::int64_t packets) {
  if (pass_ == 0) {
    estimate_difference();
    pass_ = 1;
    begin_pass();
  }
  for (std::int64_t i = 0; i < packets; ++i) {
    const bool has_sent = inputs_[0].has_packet;
    const bool has_received = inputs_[1].has_packet;
    if (has_sent || has_received) {
      const bool first =
          has_sent && (!has_received ||
                       inputs_[0].packet.time_ns <= inputs_[1].packet.time_ns - difference_ns_);
      process(first ? 0 : 1);
      continue;
    }
    settle_all();
    if (pass_ == 2) {
      for (MatchedConnection& connection : matched_) {
        for (MatchedDirection& direction : connection.directions) direction.pattern.finish();
      }
      for (unsigned side = 0; side < 2; ++side) damage_[side] = inputs_[side].file->damage();
      pass_ = 3;
      return false;
    }
    if (sizes_.empty() && find_sizes()) {
      restart();
      return true;
    }
    end_first_pass();
    pass_ = 2;
    begin_pass();
    return true;
  }
  return pass_ != 3;
}

/// Estimate the difference of the clocks: the median over packets near the beginnings of both files
/// of (time at `received` - time at `sent`).
void Matcher::estimate_difference() {
  std::unordered_map<std::uint64_t, std::int64_t> sent;
  std::vector<std::int64_t> differences;
  for (unsigned side = 0; side < 2; ++side) {
    Input input;
    input.file = open_(static_cast<int>(side));
    const ClockCurve& clock = options_.clocks[side];
    input.step(clock, sizes_);
    for (std::int64_t i = 0; i < max_first_packets && input.has_packet;
         ++i, input.step(clock, sizes_)) {
      const std::uint64_t key = key_of(input.packet, 0);
      if (side == 0) {
        sent.emplace(key, input.packet.time_ns);
      } else if (const auto match = sent.find(key); match != sent.end()) {
        differences.push_back(input.packet.time_ns - match->second);
        if (differences.size() == enough_pairs) break;
      }
    }
  }
  if (differences.empty()) return;
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  first_difference_ns_ = *middle;
}

/// Open both captures at their beginnings, and read their first packets.
void Matcher::begin_pass() {
  difference_ns_ = first_difference_ns_;  // both passes then read in the same order
  for (unsigned side = 0; side < 2; ++side) {
    inputs_[side] = Input{};
    inputs_[side].file = open_(static_cast<int>(side));
    inputs_[side].step(options_.clocks[side], sizes_);
    trackers_[side] = std::make_unique<Connections>(NoCallback{});
  }
}

/// Decide which direction of each connection is forward, and find the smallest delays.
void Matcher::end_first_pass() {
  for (unsigned side = 0; side < 2; ++side) {
    first_ns_[side] = inputs_[side].first_ns;
    last_ns_[side] = inputs_[side].last_ns;
  }
  for (MatchedConnection& connection : matched_) {
    auto& [one, two] = connection.directions;
    if (one.pairs != 0 && two.pairs != 0) {
      one.forward = one.min_difference_ - two.max_difference_ >= 0;
    } else if (one.pairs != 0) {
      one.forward = one.min_difference_ / 2 + one.max_difference_ / 2 >= 0;
    } else if (two.pairs != 0) {
      one.forward = two.min_difference_ / 2 + two.max_difference_ / 2 < 0;
    }
    two.forward = !one.forward;
    for (MatchedDirection& direction : connection.directions) {
      if (direction.pairs == 0) continue;
      std::int64_t& smallest = direction.forward ? smallest_.forward : smallest_.backward;
      smallest = std::min(smallest, direction.smallest_delay());
    }
  }
}

std::uint64_t Matcher::key_of(const Packet& packet, unsigned side) {
  constexpr std::uint8_t ecn_flags = 0xc0;
  const auto mix = [](std::uint64_t state, std::uint64_t value) {
    state = (state ^ value) * 0x9e3779b97f4a7c15;
    return state ^ (state >> 29);
  };
  const Endpoints& ends = packet.endpoints;
  std::uint64_t key = mix(1 + side, ends.rest);
  key = mix(key, ends.source[0]);
  key = mix(key, ends.destination[0]);
  if (ends.version() == 6) {
    key = mix(key, ends.source[1]);
    key = mix(key, ends.destination[1]);
  }
  key = mix(key, std::uint64_t{packet.sequence} << 32 | packet.acknowledgement);
  key = mix(key, std::uint64_t{packet.tsval} << 32 | packet.tsecr);
  key = mix(key, std::uint64_t{packet.payload} << 40 | std::uint64_t{packet.identification} << 24 |
                     std::uint64_t{packet.window} << 8 |
                     static_cast<std::uint8_t>(packet.flags & ~ecn_flags));
  key = mix(key, packet.content);
  return key;
}

/// Search the current packet of one capture among the stored packets of the other capture. If it is
/// not there, store it until the other capture has it. Then read the next packet.
void Matcher::process(unsigned side) {
  Input& input = inputs_[side];
  const Packet& packet = input.packet;
  FlowId flow{.side = side};
  const Tracked& connection = trackers_[side]->find(packet, input.file_ns, flow.direction);
  flow.number = connection.number;
  if (states_[side].size() <= flow.number) states_[side].resize(flow.number + 1);
  input.latest_ns = std::max(input.latest_ns, packet.time_ns);
  if (packet.payload != 0 && pass_ == 1 && packet.endpoints.protocol() == protocol_tcp) {
    ConnectionState& state = state_of(flow);
    state.endpoints[flow.direction] = packet.endpoints;
    std::uint32_t& longest = state.longest[flow.direction];
    longest = std::max(longest, packet.payload);
  }
  if (packet.mss != 0) state_of(flow).mss[flow.direction] = packet.mss;
  const std::size_t slot = slot_of(key_of(packet, 1 - side));
  if (slots_[slot].entry >= 0) {
    Entry& other = entries_[static_cast<std::size_t>(remove_first(slot))];
    if (state_of(flow).matched < 0 || state_of(other.flow).matched < 0) {
      link(side == 0 ? std::array{flow, other.flow} : std::array{other.flow, flow},
           packet.endpoints);
    }
    const FlowId other_flow = other.flow;
    // If the captures disagree on where a connection begins, the first capture decides.
    MatchedDirection& direction = *matched(side == 0 ? flow : other_flow);
    const std::int64_t ahead = packet.time_ns - other.time_ns;
    const std::int64_t difference_ns = side == 1 ? ahead : -ahead;
    const std::int64_t delay_ns = direction.forward ? difference_ns : -difference_ns;
    difference_ns_ += (difference_ns - difference_ns_) / 64;
    other.is_found = true;
    other.delay_ns = delay_ns;
    record_pair(direction, difference_ns, side == 0 ? packet.time_ns : other.time_ns);
    settle(other_flow, max_waiting, false);
    // If the clocks differ, the packet may be read later at the capture that it passed first.
    if (side == origin(direction)) {
      Entry& sent = entries_[static_cast<std::size_t>(enqueue(flow, packet))];
      sent.is_found = true;
      sent.delay_ns = delay_ns;
    }
  } else {
    const std::int32_t entry = enqueue(flow, packet);
    entries_[static_cast<std::size_t>(entry)].key = key_of(packet, side);
    insert(entry);
  }
  // Identifications of UDP repeat after 65536 packets.
  const bool udp = packet.endpoints.protocol() == protocol_udp;
  settle(flow, udp ? max_udp_waiting : max_waiting, false);
  input.step(options_.clocks[side], sizes_);
}

/// Record that connections of the two captures are the same, because both have a packet with these
/// endpoints. A connection that is already linked to another connection keeps its link.
void Matcher::link(const std::array<FlowId, 2>& pair, const Endpoints& endpoints) {
  ConnectionState& sent = state_of(pair[0]);
  ConnectionState& received = state_of(pair[1]);
  if (sent.matched < 0) {
    // The other connection may already be linked, if only the first capture splits it in two.
    sent.matched = static_cast<std::int32_t>(matched_.size());
    MatchedConnection& fresh = matched_.emplace_back();
    fresh.numbers = {pair[0].number, pair[1].number};
    fresh.endpoints[pair[0].direction] = endpoints;
    fresh.endpoints[1 - pair[0].direction] = endpoints.reversed();
  }
  if (received.matched < 0) {
    received.matched = sent.matched;
    received.is_reversed = pair[0].direction != pair[1].direction;
  }
}

/// Return the matched direction of a flow, or null if the other capture lacks the connection.
MatchedDirection* Matcher::matched(const FlowId& flow) {
  const ConnectionState& state = state_of(flow);
  if (state.matched < 0) return nullptr;
  MatchedConnection& connection = matched_[static_cast<std::size_t>(state.matched)];
  return &connection.directions[state.is_reversed ? 1 - flow.direction : flow.direction];
}

/// Discard the first pass and repeat it.
void Matcher::restart() {
  states_ = {};
  matched_.clear();
  entries_.clear();
  free_ = -1;
  waiting_ = 0;
  slots_.assign(1024, {});
  used_ = 0;
  pairs_first_ns_ = std::numeric_limits<std::int64_t>::max();
  pairs_last_ns_ = std::numeric_limits<std::int64_t>::min();
  begin_pass();
}

/// Record that both captures have a packet. `sent_ns` is the packet's time in `sent`.
void Matcher::record_pair(MatchedDirection& direction, std::int64_t difference_ns,
                          std::int64_t sent_ns) {
  if (pass_ == 1) {
    ++direction.pairs;
    direction.min_difference_ = std::min(direction.min_difference_, difference_ns);
    direction.max_difference_ = std::max(direction.max_difference_, difference_ns);
    pairs_first_ns_ = std::min(pairs_first_ns_, sent_ns);
    pairs_last_ns_ = std::max(pairs_last_ns_, sent_ns);
    return;
  }
  const std::int64_t tenth = span_ns() / 10;
  const std::int64_t delay_ns = direction.forward ? difference_ns : -difference_ns;
  const auto update = [&](SmallestDelays& smallest) {
    std::int64_t& least = direction.forward ? smallest.forward : smallest.backward;
    least = std::min(least, delay_ns);
  };
  if (sent_ns <= pairs_first_ns_ + tenth) update(smallest_first_);
  if (sent_ns >= pairs_last_ns_ - tenth) update(smallest_last_);
}

/// Append a packet to the queue of its flow. Return the index of the packet's entry.
std::int32_t Matcher::enqueue(const FlowId& flow, const Packet& packet) {
  std::int32_t index = free_;
  if (index >= 0) {
    free_ = entries_[static_cast<std::size_t>(index)].next;
  } else {
    index = static_cast<std::int32_t>(entries_.size());
    entries_.emplace_back();
  }
  Entry& entry = entries_[static_cast<std::size_t>(index)];
  entry = Entry{};
  entry.time_ns = packet.time_ns;
  entry.data = packet.payload != 0;
  entry.flow = flow;
  ++waiting_;
  auto& queue = state_of(flow).waiting[flow.direction];
  if (queue.full()) queue.grow();
  queue.push(index);
  return index;
}

/// Settle the packets at the head of a flow's queue that have been found or have waited too long.
/// Leave at most `max_queue` packets in the queue. If `force` is set, settle all packets.
void Matcher::settle(const FlowId& flow, std::size_t max_queue, bool force) {
  auto& queue = state_of(flow).waiting[flow.direction];
  if (queue.empty()) return;
  const unsigned side = flow.side;
  // The time up to which both captures have been read, by this capture's clock.
  constexpr std::int64_t unread = std::numeric_limits<std::int64_t>::min();
  std::int64_t now = inputs_[1 - side].latest_ns;
  if (now != unread) {
    now = std::min(inputs_[side].latest_ns, now + (side == 1 ? difference_ns_ : -difference_ns_));
  }
  MatchedDirection* direction = matched(flow);
  while (!queue.empty()) {
    const std::int32_t index = queue.front();
    Entry& entry = entries_[static_cast<std::size_t>(index)];
    if (!entry.is_found) {
      const bool is_overdue = now != unread && now - entry.time_ns > longest_delay_ns;
      if (!force && !is_overdue && queue.size() <= max_queue && waiting_ <= max_waiting) return;
      remove(index);
    }
    if (pass_ == 2 && direction != nullptr) count(*direction, side, entry);
    queue.pop();
    entry.next = free_;
    free_ = index;
    --waiting_;
  }
}

void Matcher::settle_all() {
  for (unsigned side = 0; side < 2; ++side) {
    for (std::uint32_t number = 0; number < states_[side].size(); ++number) {
      for (unsigned direction = 0; direction < 2; ++direction) {
        settle({side, number, direction}, 0, true);
      }
    }
  }
}

/// Count a packet in the second pass, in the order of its capture.
void Matcher::count(MatchedDirection& direction, unsigned side, const Entry& entry) {
  if (direction.pairs == 0 && !options_.complete) {
    // The delay of the path is unknown, so it is unknown which packets the other capture missed.
    if (side == origin(direction)) ++direction.uncovered;
    return;
  }
  const unsigned other = 1 - side;
  if (side != origin(direction)) {
    if (entry.is_found) return;
    const bool covered =
        options_.complete || (entry.time_ns - direction.largest_delay() >= first_ns_[other] &&
                              entry.time_ns - direction.smallest_delay() <= last_ns_[other]);
    ++(covered ? direction.unseen : direction.uncovered);
    return;
  }
  if (entry.time_ns < options_.start_ns || entry.time_ns >= options_.end_ns) return;
  if (!entry.is_found && !options_.complete &&
      (entry.time_ns + direction.smallest_delay() < first_ns_[other] ||
       entry.time_ns + direction.largest_delay() > last_ns_[other])) {
    ++direction.uncovered;
    return;
  }
  ++direction.sent;
  if (entry.data) ++direction.data_sent;
  direction.pattern.add(!entry.is_found, entry.time_ns);
  if (!entry.is_found) {
    ++direction.lost;
    if (entry.data) ++direction.data_lost;
    return;
  }
  direction.delay_sum += static_cast<double>(entry.delay_ns);
  direction.min_delay = std::min(direction.min_delay, entry.delay_ns);
  direction.queueing.add(entry.delay_ns - direction.smallest_delay());
}

// --------------------------------------------------------- packets that are not found yet, by key

/// Return the slot of the entries with a key, or the free slot to which they belong.
std::size_t Matcher::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = key & mask;
  while (slots_[slot].entry >= 0 && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void Matcher::insert(std::int32_t index) {
  const std::uint64_t key = entries_[static_cast<std::size_t>(index)].key;
  Slot& slot = slots_[slot_of(key)];
  if (slot.entry < 0) {
    slot = {key, index};
    if (2 * ++used_ > slots_.size()) grow();
    entries_[static_cast<std::size_t>(index)].last = index;
    return;
  }
  Entry& first = entries_[static_cast<std::size_t>(slot.entry)];
  entries_[static_cast<std::size_t>(first.last)].next = index;
  first.last = index;
}

void Matcher::grow() {
  std::vector<Slot> larger(2 * slots_.size());
  slots_.swap(larger);
  for (const Slot& each : larger) {
    if (each.entry >= 0) slots_[slot_of(each.key)] = each;
  }
}

/// Remove an entry from the hash table. Earlier entries with the same key may exist, of earlier
/// connections with the same addresses and ports.
void Matcher::remove(std::int32_t index) {
  const std::size_t slot = slot_of(entries_[static_cast<std::size_t>(index)].key);
  const std::int32_t first = slots_[slot].entry;
  if (first == index) {
    remove_first(slot);
    return;
  }
  std::int32_t previous = first;
  while (entries_[static_cast<std::size_t>(previous)].next != index) {
    previous = entries_[static_cast<std::size_t>(previous)].next;
  }
  entries_[static_cast<std::size_t>(previous)].next =
      entries_[static_cast<std::size_t>(index)].next;
  std::int32_t& last = entries_[static_cast<std::size_t>(first)].last;
  if (last == index) last = previous;
}

/// Remove the first entry with a key from the hash table and return it.
std::int32_t Matcher::remove_first(std::size_t slot) {
  const std::int32_t index = slots_[slot].entry;
  const Entry& entry = entries_[static_cast<std::size_t>(index)];
  if (entry.next >= 0) {
    entries_[static_cast<std::size_t>(entry.next)].last = entry.last;
    slots_[slot].entry = entry.next;
    return index;
  }
  // Move up entries that were displaced because this slot was occupied.
  const std::size_t mask = slots_.size() - 1;
  std::size_t hole = slot;
  for (std::size_t at = (slot + 1) & mask; slots_[at].entry >= 0; at = (at + 1) & mask) {
    const std::size_t home = slots_[at].key & mask;
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      slots_[hole] = slots_[at];
      hole = at;
    }
  }
  slots_[hole] = Slot{};
  --used_;
  return index;
}

}  // namespace nagi::captures
