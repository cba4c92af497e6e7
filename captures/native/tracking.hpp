// SPDX-License-Identifier: Apache-2.0
//
// Assigns packets to connections: by addresses and ports, in either direction, and by TCP's
// sequence numbers where addresses and ports are reused.
//
// A SYN, with ACK or without, begins a new connection unless it has the number of the SYN that its
// direction sent, or immediately precedes the first number of a direction captured from its middle,
// or is a SYN-ACK that acknowledges the SYN of the present connection. The previous connection is
// kept: a packet whose numbers are far from the new one's and near to its own is still assigned to
// it. Any other packet belongs to the connection that began last.
//
// A connection is closed by an RST, or by two FINs that are acknowledged. `linger_ns` after its
// last packet a closed connection ends: its memory is freed, and later packets with its addresses
// and ports begin a new connection. Data that continues after an RST reopens the connection.
//
// A packet of the same connection as its predecessor costs one comparison; others cost a look-up in
// a hash table.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "native/packet.hpp"

namespace nagi::captures {

constexpr std::int64_t linger_ns = 60'000'000'000;  // Linux' TIME_WAIT

/// The numbers that distinguish a direction of a connection from others with its addresses and
/// ports.
struct Numbers {
  std::uint32_t first = 0;  // number of its SYN, or without one of the first packet captured
  std::uint32_t next = 0;  // one above the highest number
  std::uint32_t acked = 0;  // first acknowledgement by the other side
  std::uint32_t fin = 0;  // one above the number of its FIN
  bool started = false;  // `first` and `next` are set
  bool syn = false;
  bool is_acked = false;
  bool has_fin = false;
  bool fin_acked = false;
};

/// Return a hash that is equal for both directions.
inline std::size_t hash_of(const Endpoints& endpoints) {
  const auto mix = [](const std::array<std::uint64_t, 2>& address, std::uint16_t port) {
    std::uint64_t value = (address[0] ^ (std::uint64_t{port} << 40)) * 0x9e3779b97f4a7c15;
    value = ((value ^ (value >> 29)) + address[1]) * 0xbf58476d1ce4e5b9;
    return value ^ (value >> 32);
  };
  const std::uint64_t sum = mix(endpoints.source, endpoints.source_port()) +
                            mix(endpoints.destination, endpoints.destination_port());
  return ((sum + endpoints.protocol()) * 0x94d049bb133111eb) >> 20;
}

struct Tracked {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  Endpoints endpoints;          // of direction 0
  std::uint32_t number = none;  // in the order of first packets; none: a free slot
  std::uint32_t place = 0;
  std::uint32_t before = none;  // slot of the previous connection with the same endpoints
  bool closed = false;
  bool superseded = false;  // another connection has it as `before`
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  std::array<Numbers, 2> numbers;
};

/// Keeps the connections. `T` is a Tracked with further state. `Gone` is called with a connection
/// that ends.
template <typename T, typename Gone>
class Tracker {
 public:
  explicit Tracker(Gone gone) : gone_(std::move(gone)), table_(1024) {}
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  /// Return the packet's connection, and in `direction` which of its directions the packet has.
  T& find(const Packet& packet, std::int64_t time_ns, unsigned& direction) {
    T* found = look_up(packet.endpoints, direction);
    const bool special = (packet.flags & (flag_syn | flag_fin | flag_rst)) != 0;
    if (found == nullptr || special || found->closed || found->before != Tracked::none)
        [[unlikely]] {
      found = &choose(packet, time_ns, found, direction);
    }
    found->last_ns = std::max(found->last_ns, time_ns);
    if (packet.endpoints.protocol() == protocol_tcp) note(packet, *found, direction);
    return *found;
  }

  /// Return the connections that have not ended. Those without a number are free slots.
  [[nodiscard]] std::deque<T>& places() { return places_; }
  [[nodiscard]] const std::deque<T>& places() const { return places_; }
  /// Return how many connections have begun.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  struct Closing {
    std::uint32_t place = 0;
    std::uint32_t number = 0;
    std::int64_t time_ns = 0;
  };
  static constexpr std::uint32_t near = 1U << 25;  // bytes

  static unsigned direction_of(const T& connection, const Endpoints& endpoints) {
    return connection.endpoints == endpoints ? 0 : 1;
  }
  static bool is_near(std::uint32_t some, std::uint32_t other) {
    return some - other + near < 2 * near;
  }

  T* look_up(const Endpoints& endpoints, unsigned& direction) {
    if (last_ != nullptr) [[likely]] {
      if (last_->endpoints == endpoints) {
        direction = 0;
        return last_;
      }
      if (last_->endpoints.is_turned(endpoints)) {
        direction = 1;
        return last_;
      }
    }
    const std::uint32_t entry = table_[slot_of(endpoints)];
    if (entry == 0) return nullptr;
    last_ = &places_[entry - 1];
    direction = direction_of(*last_, endpoints);
    return last_;
  }

  T& choose(const Packet& packet, std::int64_t time_ns, T* found, unsigned& direction) {
    if (found != nullptr && found->closed) {
      if (time_ns - found->last_ns > linger_ns) {
        leave(*found);
        found = nullptr;
      } else if (packet.payload != 0 && (packet.flags & flag_rst) == 0) {
        const Numbers& mine = found->numbers[direction];
        const bool over = found->numbers[0].fin_acked && found->numbers[1].fin_acked;
        const auto more = static_cast<std::int32_t>(packet.sequence + packet.payload - mine.next);
        if (!over && mine.started && more > 0) found->closed = false;
      }
    }
    if (found == nullptr) return add(packet, time_ns, direction, Tracked::none);
    const bool syn = (packet.flags & flag_syn) != 0;
    if (found->before != Tracked::none) {
      T& before = places_[found->before];
      const unsigned there = direction_of(before, packet.endpoints);
      const bool older =
          syn ? before.numbers[there].syn && before.numbers[there].first == packet.sequence &&
                    begins_another(packet, *found, direction)
              : evidence(packet, *found, direction) < 0 && evidence(packet, before, there) > 0;
      if (older) {
        direction = there;
        return before;
      }
    }
    if (!syn || !begins_another(packet, *found, direction)) return *found;
    if (found->before != Tracked::none) leave(places_[std::exchange(found->before, Tracked::none)]);
    found->superseded = true;
    return add(packet, time_ns, direction, found->place);
  }

  static bool begins_another(const Packet& packet, const T& connection, unsigned direction) {
    const Numbers& mine = connection.numbers[direction];
    const Numbers& other = connection.numbers[1 - direction];
    const bool answer = (packet.flags & flag_ack) != 0;
    if (answer && other.syn && packet.acknowledgement == other.first + 1) return false;
    if (mine.started) return packet.sequence != (mine.syn ? mine.first : mine.first - 1);
    if (!answer) {
      if (connection.closed) return true;
    } else if (other.syn) {
      return false;
    }
    return mine.is_acked && mine.acked - packet.sequence - 1 >= near;
  }

  /// Return -1 if the packet's numbers contradict the connection's, else how many of them agree.
  static int evidence(const Packet& packet, const T& connection, unsigned direction) {
    const Numbers& mine = connection.numbers[direction];
    const Numbers& other = connection.numbers[1 - direction];
    int agree = 0;
    if (mine.started) {
      if (!is_near(packet.sequence, mine.next)) return -1;
      ++agree;
    }
    if ((packet.flags & flag_ack) != 0 && other.started) {
      if (!is_near(packet.acknowledgement, other.next)) return -1;
      ++agree;
    }
    return agree;
  }

  void note(const Packet& packet, T& connection, unsigned direction) {
    Numbers& mine = connection.numbers[direction];
    Numbers& other = connection.numbers[1 - direction];
    const std::uint8_t flags = packet.flags;
    if ((flags & flag_rst) != 0) [[unlikely]] {
      // Receivers ignore an RST whose number is far from the expected one (RFC 5961, section 3).
      if (!mine.started || is_near(packet.sequence, mine.next)) close(connection);
      return;
    }
    std::uint32_t end = packet.sequence + packet.payload;
    if (!mine.started) [[unlikely]] {
      mine.started = true;
      mine.first = mine.next = packet.sequence;
    }
    bool rival = false;  // the packet is one of several answers to a SYN
    if ((flags & (flag_syn | flag_fin)) != 0) [[unlikely]] {
      end += ((flags & flag_syn) != 0 ? 1 : 0) + ((flags & flag_fin) != 0 ? 1 : 0);
      rival = (flags & flag_syn) != 0 && mine.syn && packet.sequence != mine.first;
      if ((flags & flag_syn) != 0 && !mine.syn) {
        mine.syn = true;
        mine.first = packet.sequence;
      }
      if ((flags & flag_fin) != 0) {
        mine.has_fin = true;
        mine.fin = end;
      }
    }
    if (!rival && static_cast<std::int32_t>(end - mine.next) > 0) mine.next = end;
    if ((flags & flag_ack) == 0) return;
    if (!other.is_acked) [[unlikely]] {
      other.is_acked = true;
      other.acked = packet.acknowledgement;
    }
    if (other.has_fin && !other.fin_acked) [[unlikely]] {
      other.fin_acked = static_cast<std::int32_t>(packet.acknowledgement - other.fin) >= 0;
      if (other.fin_acked && mine.fin_acked) close(connection);
    }
  }

  void close(T& connection) {
    if (connection.closed) return;
    connection.closed = true;
    closing_.push_back({connection.place, connection.number, connection.last_ns});
  }

  T& add(const Packet& packet, std::int64_t time_ns, unsigned& direction, std::uint32_t before) {
    sweep(time_ns);
    if (2 * (used_ + 1) > table_.size()) grow();
    std::uint32_t place = 0;
    if (free_.empty()) {
      place = static_cast<std::uint32_t>(places_.size());
      places_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    T& connection = places_[place];
    const bool answer = (packet.flags & (flag_syn | flag_ack)) == (flag_syn | flag_ack);
    connection.endpoints = answer ? packet.endpoints.turned() : packet.endpoints;
    connection.number = count_++;
    connection.place = place;
    connection.before = before;
    direction = direction_of(connection, packet.endpoints);
    std::uint32_t& entry = table_[slot_of(packet.endpoints)];
    if (entry == 0) ++used_;
    entry = place + 1;
    last_ = &connection;
    return connection;
  }

  /// End some of the connections that closed long ago.
  void sweep(std::int64_t now) {
    for (int i = 0; i < 4 && !closing_.empty(); ++i) {
      const Closing first = closing_.front();
      T& connection = places_[first.place];
      const bool still = connection.number == first.number && connection.closed;
      if (still && !connection.superseded && now - first.time_ns <= linger_ns) return;
      closing_.pop_front();
      if (!still || connection.superseded) continue;
      if (now - connection.last_ns > linger_ns) {
        leave(connection);
      } else {
        closing_.push_back({first.place, first.number, connection.last_ns});
      }
    }
  }

  void leave(T& connection) {
    if (connection.before != Tracked::none) leave(places_[connection.before]);
    if (!connection.superseded) erase(connection);
    gone_(connection);
    const std::uint32_t place = connection.place;
    connection = T{};
    free_.push_back(place);
    last_ = nullptr;
  }

  // ---------------------------------------------------------------------------------- hash table

  /// Return the slot of the endpoints, or the free slot for them.
  [[nodiscard]] std::size_t slot_of(const Endpoints& endpoints) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash_of(endpoints) & mask;
    while (table_[slot] != 0) {
      const T& connection = places_[table_[slot] - 1];
      if (connection.endpoints == endpoints || connection.endpoints.is_turned(endpoints)) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  void grow() {
    std::vector<std::uint32_t> larger(2 * table_.size());
    table_.swap(larger);
    for (const std::uint32_t each : larger) {
      if (each != 0) table_[slot_of(places_[each - 1].endpoints)] = each;
    }
  }
  void erase(const T& connection) {
    const std::size_t mask = table_.size() - 1;
    std::size_t hole = slot_of(connection.endpoints);
    // Move up entries that were displaced because this slot was occupied.
    for (std::size_t at = (hole + 1) & mask; table_[at] != 0; at = (at + 1) & mask) {
      const std::size_t home = hash_of(places_[table_[at] - 1].endpoints) & mask;
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        table_[hole] = table_[at];
        hole = at;
      }
    }
    table_[hole] = 0;
    --used_;
  }

  Gone gone_;
  std::deque<T> places_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> table_;  // a connection's slot + 1; 0: free
  std::deque<Closing> closing_;  // roughly in the order of their last packets
  std::size_t used_ = 0;
  std::uint32_t count_ = 0;
  T* last_ = nullptr;  // the connection that was looked up last
};

}  // namespace nagi::captures
