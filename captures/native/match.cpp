// SPDX-License-Identifier: Apache-2.0
#include "native/match.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

namespace nagi::captures {

namespace {

// packets that are read to estimate the difference of the clocks
constexpr std::int64_t looked_at_first = 200'000;
constexpr std::size_t pairs_enough = 10'000;
constexpr std::size_t udp_waiting_most = 1 << 15;  // half the number of different identifications

}  // namespace

void Matcher::Input::step(const ClockCurve& clock, const Sizes& sizes) {
  Record record;
  if (cut_at != 0) {
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
  const auto found = sizes.find(packet.endpoints);
  if (found == sizes.end()) return;
  cut_at = found->second;
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
    const bool some = inputs_[0].has_packet;
    const bool others = inputs_[1].has_packet;
    if (some || others) {
      const bool first = some && (!others || inputs_[0].packet.time_ns <=
                                                 inputs_[1].packet.time_ns - difference_ns_);
      take(first ? 0 : 1);
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
      begin_again();
      return true;
    }
    end_first_pass();
    pass_ = 2;
    begin_pass();
    return true;
  }
  return pass_ != 3;
}

/// Estimate the difference of the clocks: the median over packets near the beginnings of both
/// files.
void Matcher::estimate_difference() {
  std::unordered_map<std::uint64_t, std::int64_t> sent;
  std::vector<std::int64_t> differences;
  for (unsigned side = 0; side < 2; ++side) {
    Input input;
    input.file = open_(static_cast<int>(side));
    const ClockCurve& clock = options_.clocks[side];
    input.step(clock, sizes_);
    for (std::int64_t i = 0; i < looked_at_first && input.has_packet;
         ++i, input.step(clock, sizes_)) {
      const std::uint64_t key = key_of(input.packet, 0);
      if (side == 0) {
        sent.emplace(key, input.packet.time_ns);
      } else if (const auto found = sent.find(key); found != sent.end()) {
        differences.push_back(input.packet.time_ns - found->second);
        if (differences.size() == pairs_enough) break;
      }
    }
  }
  if (differences.empty()) return;
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  first_difference_ns_ = *middle;
}

void Matcher::begin_pass() {
  difference_ns_ = first_difference_ns_;  // both passes then read in the same order
  for (unsigned side = 0; side < 2; ++side) {
    inputs_[side] = Input{};
    inputs_[side].file = open_(static_cast<int>(side));
    inputs_[side].step(options_.clocks[side], sizes_);
    trackers_[side] = std::make_unique<Connections>(Nothing{});
  }
}

void Matcher::end_first_pass() {
  for (unsigned side = 0; side < 2; ++side) {
    first_ns_[side] = inputs_[side].first_ns;
    last_ns_[side] = inputs_[side].last_ns;
  }
  for (MatchedConnection& connection : matched_) {
    auto& [one, two] = connection.directions;
    if (one.pairs != 0 && two.pairs != 0) {
      one.forward = one.least_ - two.most_ >= 0;
    } else if (one.pairs != 0) {
      one.forward = one.least_ / 2 + one.most_ / 2 >= 0;
    } else if (two.pairs != 0) {
      one.forward = two.least_ / 2 + two.most_ / 2 < 0;
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

void Matcher::take(unsigned side) {
  Input& input = inputs_[side];
  const Packet& packet = input.packet;
  Whose whose{.side = side};
  const Tracked& connection = trackers_[side]->find(packet, input.file_ns, whose.direction);
  whose.number = connection.number;
  if (locals_[side].size() <= whose.number) locals_[side].resize(whose.number + 1);
  input.taken_ns = std::max(input.taken_ns, packet.time_ns);
  if (packet.payload != 0 && pass_ == 1 && packet.endpoints.protocol() == protocol_tcp) {
    Local& mine = local(whose);
    mine.endpoints[whose.direction] = packet.endpoints;
    std::uint32_t& longest = mine.longest[whose.direction];
    longest = std::max(longest, packet.payload);
  }
  if (packet.mss != 0) local(whose).mss[whose.direction] = packet.mss;
  const std::size_t slot = slot_of(key_of(packet, 1 - side));
  if (slots_[slot].entry >= 0) {
    Entry& other = entries_[static_cast<std::size_t>(remove_first(slot))];
    if (local(whose).matched < 0 || local(other.whose).matched < 0) {
      link(side == 0 ? std::array{whose, other.whose} : std::array{other.whose, whose},
           packet.endpoints);
    }
    const Whose theirs = other.whose;
    // If the captures divide a connection differently, the division of the first capture counts.
    MatchedDirection& direction = *matched(side == 0 ? whose : theirs);
    const std::int64_t ahead = packet.time_ns - other.time_ns;
    const std::int64_t difference_ns = side == 1 ? ahead : -ahead;
    const std::int64_t delay_ns = direction.forward ? difference_ns : -difference_ns;
    difference_ns_ += (difference_ns - difference_ns_) / 64;
    other.found = true;
    other.delay_ns = delay_ns;
    note(direction, difference_ns, side == 0 ? packet.time_ns : other.time_ns);
    settle(theirs, max_waiting, false);
    // if the clocks differ, the packet was read later at its origin
    if (side == origin(direction)) {
      Entry& mine = entries_[static_cast<std::size_t>(wait(whose, packet))];
      mine.found = true;
      mine.delay_ns = delay_ns;
    }
  } else {
    const std::int32_t entry = wait(whose, packet);
    entries_[static_cast<std::size_t>(entry)].key = key_of(packet, side);
    insert(entry);
  }
  // UDP's identifications repeat.
  const bool udp = packet.endpoints.protocol() == protocol_udp;
  settle(whose, udp ? udp_waiting_most : max_waiting, false);
  input.step(options_.clocks[side], sizes_);
}

/// Record that connections of the two captures are the same, as they have a packet with these
/// endpoints in common, unless either already equals another connection.
void Matcher::link(const std::array<Whose, 2>& pair, const Endpoints& endpoints) {
  Local& sent = local(pair[0]);
  Local& received = local(pair[1]);
  if (sent.matched < 0) {
    // A connection that only the first capture divides in two keeps its first match on the other
    // side.
    sent.matched = static_cast<std::int32_t>(matched_.size());
    MatchedConnection& fresh = matched_.emplace_back();
    fresh.numbers = {pair[0].number, pair[1].number};
    fresh.endpoints[pair[0].direction] = endpoints;
    fresh.endpoints[1 - pair[0].direction] = endpoints.turned();
  }
  if (received.matched < 0) {
    received.matched = sent.matched;
    received.turned = pair[0].direction != pair[1].direction;
  }
}

/// Return the direction in the result, or null if the other capture does not have the connection.
MatchedDirection* Matcher::matched(const Whose& whose) {
  const Local& mine = local(whose);
  if (mine.matched < 0) return nullptr;
  MatchedConnection& connection = matched_[static_cast<std::size_t>(mine.matched)];
  return &connection.directions[mine.turned ? 1 - whose.direction : whose.direction];
}

/// Discard the first pass and repeat it.
void Matcher::begin_again() {
  locals_ = {};
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

/// Record a pair of packets, whichever was read first.
void Matcher::note(MatchedDirection& direction, std::int64_t difference_ns,
                   std::int64_t sent_side_ns) {
  if (pass_ == 1) {
    ++direction.pairs;
    direction.least_ = std::min(direction.least_, difference_ns);
    direction.most_ = std::max(direction.most_, difference_ns);
    pairs_first_ns_ = std::min(pairs_first_ns_, sent_side_ns);
    pairs_last_ns_ = std::max(pairs_last_ns_, sent_side_ns);
    return;
  }
  const std::int64_t tenth = span_ns() / 10;
  const std::int64_t delay_ns = direction.forward ? difference_ns : -difference_ns;
  const auto take_note = [&](SmallestDelays& smallest) {
    std::int64_t& least = direction.forward ? smallest.forward : smallest.backward;
    least = std::min(least, delay_ns);
  };
  if (sent_side_ns <= pairs_first_ns_ + tenth) take_note(smallest_first_);
  if (sent_side_ns >= pairs_last_ns_ - tenth) take_note(smallest_last_);
}

/// Append a packet to its queue. Return its entry.
std::int32_t Matcher::wait(const Whose& whose, const Packet& packet) {
  std::int32_t place = free_;
  if (place >= 0) {
    free_ = entries_[static_cast<std::size_t>(place)].next;
  } else {
    place = static_cast<std::int32_t>(entries_.size());
    entries_.emplace_back();
  }
  Entry& entry = entries_[static_cast<std::size_t>(place)];
  entry = Entry{};
  entry.time_ns = packet.time_ns;
  entry.data = packet.payload != 0;
  entry.whose = whose;
  ++waiting_;
  auto& queue = local(whose).waiting[whose.direction];
  if (queue.full()) queue.grow();
  queue.push(place);
  return place;
}

/// Settle the packets at the head of a queue that have been found or have waited too long.
void Matcher::settle(const Whose& whose, std::size_t most, bool all) {
  auto& queue = local(whose).waiting[whose.direction];
  if (queue.empty()) return;
  const unsigned side = whose.side;
  // The time up to which both captures have been read, by this capture's clock.
  constexpr std::int64_t unread = std::numeric_limits<std::int64_t>::min();
  std::int64_t now = inputs_[1 - side].taken_ns;
  if (now != unread) {
    now = std::min(inputs_[side].taken_ns, now + (side == 1 ? difference_ns_ : -difference_ns_));
  }
  MatchedDirection* direction = matched(whose);
  while (!queue.empty()) {
    const std::int32_t place = queue.front();
    Entry& entry = entries_[static_cast<std::size_t>(place)];
    if (!entry.found) {
      const bool late = now != unread && now - entry.time_ns > longest_delay_ns;
      if (!all && !late && queue.size() <= most && waiting_ <= max_waiting) return;
      remove(place);
    }
    if (pass_ == 2 && direction != nullptr) decide(*direction, side, entry);
    queue.pop();
    entry.next = free_;
    free_ = place;
    --waiting_;
  }
}

void Matcher::settle_all() {
  for (unsigned side = 0; side < 2; ++side) {
    for (std::uint32_t number = 0; number < locals_[side].size(); ++number) {
      for (unsigned direction = 0; direction < 2; ++direction) {
        settle({side, number, direction}, 0, true);
      }
    }
  }
}

/// Count a packet in the second pass, in the order of its capture.
void Matcher::decide(MatchedDirection& direction, unsigned side, const Entry& entry) {
  if (direction.pairs == 0 && !options_.complete) {
    // The delay of the path is not known.
    if (side == origin(direction)) ++direction.uncovered;
    return;
  }
  const unsigned other = 1 - side;
  if (side != origin(direction)) {
    if (entry.found) return;
    const bool covered =
        options_.complete || (entry.time_ns - direction.largest_delay() >= first_ns_[other] &&
                              entry.time_ns - direction.smallest_delay() <= last_ns_[other]);
    ++(covered ? direction.unseen : direction.uncovered);
    return;
  }
  if (entry.time_ns < options_.start_ns || entry.time_ns >= options_.end_ns) return;
  if (!entry.found && !options_.complete &&
      (entry.time_ns + direction.smallest_delay() < first_ns_[other] ||
       entry.time_ns + direction.largest_delay() > last_ns_[other])) {
    ++direction.uncovered;
    return;
  }
  ++direction.sent;
  if (entry.data) ++direction.data_sent;
  direction.pattern.add(!entry.found, entry.time_ns);
  if (!entry.found) {
    ++direction.lost;
    if (entry.data) ++direction.data_lost;
    return;
  }
  direction.delay_sum += static_cast<double>(entry.delay_ns);
  direction.delay_least = std::min(direction.delay_least, entry.delay_ns);
  direction.queueing.add(entry.delay_ns - direction.smallest_delay());
}

// ------------------------------------------------------------- packets that wait, by how they look

/// Return the slot of the entries with a key, or the free slot for them.
std::size_t Matcher::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = key & mask;
  while (slots_[slot].entry >= 0 && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void Matcher::insert(std::int32_t place) {
  const std::uint64_t key = entries_[static_cast<std::size_t>(place)].key;
  Slot& slot = slots_[slot_of(key)];
  if (slot.entry < 0) {
    slot = {key, place};
    if (2 * ++used_ > slots_.size()) grow();
    entries_[static_cast<std::size_t>(place)].last = place;
    return;
  }
  Entry& first = entries_[static_cast<std::size_t>(slot.entry)];
  entries_[static_cast<std::size_t>(first.last)].next = place;
  first.last = place;
}

void Matcher::grow() {
  std::vector<Slot> larger(2 * slots_.size());
  slots_.swap(larger);
  for (const Slot& each : larger) {
    if (each.entry >= 0) slots_[slot_of(each.key)] = each;
  }
}

/// Remove an entry from the hash table. It is the first one with its key of its connection; earlier
/// ones may belong to earlier connections with the same addresses and ports.
void Matcher::remove(std::int32_t place) {
  const std::size_t slot = slot_of(entries_[static_cast<std::size_t>(place)].key);
  const std::int32_t first = slots_[slot].entry;
  if (first == place) {
    remove_first(slot);
    return;
  }
  std::int32_t before = first;
  while (entries_[static_cast<std::size_t>(before)].next != place) {
    before = entries_[static_cast<std::size_t>(before)].next;
  }
  entries_[static_cast<std::size_t>(before)].next = entries_[static_cast<std::size_t>(place)].next;
  std::int32_t& last = entries_[static_cast<std::size_t>(first)].last;
  if (last == place) last = before;
}

/// Remove the first entry with a key from the hash table and return it.
std::int32_t Matcher::remove_first(std::size_t slot) {
  const std::int32_t place = slots_[slot].entry;
  const Entry& entry = entries_[static_cast<std::size_t>(place)];
  if (entry.next >= 0) {
    entries_[static_cast<std::size_t>(entry.next)].last = entry.last;
    slots_[slot].entry = entry.next;
    return place;
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
  return place;
}

}  // namespace nagi::captures
