// SPDX-License-Identifier: Apache-2.0
//
// Assigns packets to connections: by addresses and ports, in either direction, and by TCP's
// sequence numbers if addresses and ports are reused.
//
// A SYN, with ACK or without, begins a new connection, with three exceptions:
//   - it has the number of the SYN that its direction has already sent;
//   - its direction was captured without a SYN, and its number is one below the first number;
//   - it is a SYN-ACK that acknowledges the SYN of the current connection.
// When a new connection begins, the previous one with the same addresses and ports is still stored.
// A packet is assigned to the previous connection if its numbers are far from the numbers of the
// new connection and near to those of the previous one. Any other packet belongs to the new
// connection.
//
// An RST closes a connection, and so do two FINs that are acknowledged. A closed connection ends
// `linger_ns` after its last packet: its memory is freed, and later packets with its addresses and
// ports begin a new connection. Data that continues after an RST opens the connection again.
//
// A packet of the same connection as the packet before it costs one comparison; other packets cost
// a look-up in a hash table.
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

/// The sequence numbers of one direction of a connection, which distinguish the connection from
/// others with the same addresses and ports.
struct Numbers {
  std::uint32_t first = 0;  // number of the SYN or, without a SYN, of the first packet captured
  std::uint32_t next = 0;   // one above the highest number
  std::uint32_t acked = 0;  // first acknowledgement by the other side
  std::uint32_t fin = 0;    // one above the number of the FIN
  bool started = false;     // `first` and `next` are set
  bool syn = false;         // the direction sent a SYN
  bool is_acked = false;    // `acked` is set
  bool has_fin = false;     // `fin` is set
  bool fin_acked = false;   // the FIN has been acknowledged
};

/// Return a hash of endpoints that is equal for both directions.
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

/// A connection, as far as packets are assigned to it.
struct Tracked {
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  Endpoints endpoints;            // of direction 0
  std::uint32_t number = none;    // in the order of first packets; `none` if the slot is free
  std::uint32_t slot = 0;         // index in Tracker::slots()
  std::uint32_t previous = none;  // slot of the previous connection with the same endpoints
  bool closed = false;
  bool superseded = false;  // it is the `previous` of a newer connection
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  std::array<Numbers, 2> numbers;
};

/// Stores the connections. `T` is a Tracked with further state. `OnEnd` is a function that is
/// called with each connection that ends.
template <typename T, typename OnEnd>
class Tracker {
 public:
  explicit Tracker(OnEnd on_end) : on_end_(std::move(on_end)), table_(1024) {}
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  /// Return the connection of a packet, and set `direction` to the packet's direction in it.
  T& find(const Packet& packet, std::int64_t time_ns, unsigned& direction) {
    T* connection = look_up(packet.endpoints, direction);
    const bool is_syn_fin_or_rst = (packet.flags & (flag_syn | flag_fin | flag_rst)) != 0;
    if (connection == nullptr || is_syn_fin_or_rst || connection->closed ||
        connection->previous != Tracked::none) [[unlikely]] {
      connection = &select_connection(packet, time_ns, connection, direction);
    }
    connection->last_ns = std::max(connection->last_ns, time_ns);
    if (packet.endpoints.protocol() == protocol_tcp) update_numbers(packet, *connection, direction);
    return *connection;
  }

  /// Return the connections that have not ended. Those without a number are free slots.
  [[nodiscard]] std::deque<T>& slots() { return slots_; }
  [[nodiscard]] const std::deque<T>& slots() const { return slots_; }
  /// Return how many connections have begun.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  struct Closing {
    std::uint32_t slot = 0;
    std::uint32_t number = 0;
    std::int64_t time_ns = 0;
  };
  static constexpr std::uint32_t near = 1U << 25;  // largest difference of numbers that are near

  static unsigned direction_of(const T& connection, const Endpoints& endpoints) {
    return connection.endpoints == endpoints ? 0 : 1;
  }
  static bool is_near(std::uint32_t a, std::uint32_t b) { return a - b + near < 2 * near; }

  /// Return the newest connection with these endpoints and set `direction`, or return null.
  T* look_up(const Endpoints& endpoints, unsigned& direction) {
    if (last_ != nullptr) [[likely]] {
      if (last_->endpoints == endpoints) {
        direction = 0;
        return last_;
      }
      if (last_->endpoints.is_reverse_of(endpoints)) {
        direction = 1;
        return last_;
      }
    }
    const std::uint32_t entry = table_[slot_of(endpoints)];
    if (entry == 0) return nullptr;
    last_ = &slots_[entry - 1];
    direction = direction_of(*last_, endpoints);
    return last_;
  }

  /// Return the connection of a packet, given the newest `connection` with the packet's endpoints,
  /// or null if there is none. Begin a new connection if necessary. It is called only if the packet
  /// may not belong to `connection`: for SYN, FIN and RST, and if `connection` is closed or has a
  /// previous one.
  T& select_connection(const Packet& packet, std::int64_t time_ns, T* connection,
                       unsigned& direction) {
    if (connection != nullptr && connection->closed) {
      if (time_ns - connection->last_ns > linger_ns) {
        end_connection(*connection);
        connection = nullptr;
      } else if (packet.payload != 0 && (packet.flags & flag_rst) == 0) {
        const Numbers& sender = connection->numbers[direction];
        const bool both_finished =
            connection->numbers[0].fin_acked && connection->numbers[1].fin_acked;
        const auto more = static_cast<std::int32_t>(packet.sequence + packet.payload - sender.next);
        if (!both_finished && sender.started && more > 0) connection->closed = false;
      }
    }
    if (connection == nullptr) return add(packet, time_ns, direction, Tracked::none);
    const bool syn = (packet.flags & flag_syn) != 0;
    if (connection->previous != Tracked::none) {
      T& previous = slots_[connection->previous];
      const unsigned previous_direction = direction_of(previous, packet.endpoints);
      const bool belongs_to_previous =
          syn ? previous.numbers[previous_direction].syn &&
                    previous.numbers[previous_direction].first == packet.sequence &&
                    starts_new_connection(packet, *connection, direction)
              : score_numbers(packet, *connection, direction) < 0 &&
                    score_numbers(packet, previous, previous_direction) > 0;
      if (belongs_to_previous) {
        direction = previous_direction;
        return previous;
      }
    }
    if (!syn || !starts_new_connection(packet, *connection, direction)) return *connection;
    if (connection->previous != Tracked::none) {
      end_connection(slots_[std::exchange(connection->previous, Tracked::none)]);
    }
    connection->superseded = true;
    return add(packet, time_ns, direction, connection->slot);
  }

  /// Return whether a SYN begins a new connection instead of belonging to `connection`.
  static bool starts_new_connection(const Packet& packet, const T& connection, unsigned direction) {
    const Numbers& sender = connection.numbers[direction];
    const Numbers& receiver = connection.numbers[1 - direction];
    const bool is_answer = (packet.flags & flag_ack) != 0;
    if (is_answer && receiver.syn && packet.acknowledgement == receiver.first + 1) return false;
    if (sender.started) return packet.sequence != (sender.syn ? sender.first : sender.first - 1);
    if (!is_answer) {
      if (connection.closed) return true;
    } else if (receiver.syn) {
      return false;
    }
    return sender.is_acked && sender.acked - packet.sequence - 1 >= near;
  }

  /// Return -1 if a number of the packet is far from the connection's number, otherwise how many of
  /// its numbers (0 to 2) are near.
  static int score_numbers(const Packet& packet, const T& connection, unsigned direction) {
    const Numbers& sender = connection.numbers[direction];
    const Numbers& receiver = connection.numbers[1 - direction];
    int agree = 0;
    if (sender.started) {
      if (!is_near(packet.sequence, sender.next)) return -1;
      ++agree;
    }
    if ((packet.flags & flag_ack) != 0 && receiver.started) {
      if (!is_near(packet.acknowledgement, receiver.next)) return -1;
      ++agree;
    }
    return agree;
  }

  /// Record the packet's sequence numbers, and close the connection if the packet ends it.
  void update_numbers(const Packet& packet, T& connection, unsigned direction) {
    Numbers& sender = connection.numbers[direction];
    Numbers& receiver = connection.numbers[1 - direction];
    const std::uint8_t flags = packet.flags;
    if ((flags & flag_rst) != 0) [[unlikely]] {
      // Receivers ignore an RST whose number is far from the expected one (RFC 5961, section 3).
      if (!sender.started || is_near(packet.sequence, sender.next)) close(connection);
      return;
    }
    std::uint32_t end = packet.sequence + packet.payload;
    if (!sender.started) [[unlikely]] {
      sender.started = true;
      sender.first = sender.next = packet.sequence;
    }
    bool rival = false;  // the packet is one of several answers to a SYN
    if ((flags & (flag_syn | flag_fin)) != 0) [[unlikely]] {
      end += ((flags & flag_syn) != 0 ? 1 : 0) + ((flags & flag_fin) != 0 ? 1 : 0);
      rival = (flags & flag_syn) != 0 && sender.syn && packet.sequence != sender.first;
      if ((flags & flag_syn) != 0 && !sender.syn) {
        sender.syn = true;
        sender.first = packet.sequence;
      }
      if ((flags & flag_fin) != 0) {
        sender.has_fin = true;
        sender.fin = end;
      }
    }
    if (!rival && static_cast<std::int32_t>(end - sender.next) > 0) sender.next = end;
    if ((flags & flag_ack) == 0) return;
    if (!receiver.is_acked) [[unlikely]] {
      receiver.is_acked = true;
      receiver.acked = packet.acknowledgement;
    }
    if (receiver.has_fin && !receiver.fin_acked) [[unlikely]] {
      receiver.fin_acked = static_cast<std::int32_t>(packet.acknowledgement - receiver.fin) >= 0;
      if (receiver.fin_acked && sender.fin_acked) close(connection);
    }
  }

  /// Mark a connection as closed. It ends later, in end_lingering().
  void close(T& connection) {
    if (connection.closed) return;
    connection.closed = true;
    closing_.push_back({connection.slot, connection.number, connection.last_ns});
  }

  /// Begin a connection with a packet. `previous` is the slot of the connection with the same
  /// endpoints before it, or `none`.
  T& add(const Packet& packet, std::int64_t time_ns, unsigned& direction, std::uint32_t previous) {
    end_lingering(time_ns);
    if (2 * (used_ + 1) > table_.size()) grow();
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    T& connection = slots_[slot];
    const bool is_answer = (packet.flags & (flag_syn | flag_ack)) == (flag_syn | flag_ack);
    connection.endpoints = is_answer ? packet.endpoints.reversed() : packet.endpoints;
    connection.number = count_++;
    connection.slot = slot;
    connection.previous = previous;
    direction = direction_of(connection, packet.endpoints);
    std::uint32_t& entry = table_[slot_of(packet.endpoints)];
    if (entry == 0) ++used_;
    entry = slot + 1;
    last_ = &connection;
    return connection;
  }

  /// End up to four closed connections whose last packet was more than `linger_ns` ago.
  void end_lingering(std::int64_t now) {
    for (int i = 0; i < 4 && !closing_.empty(); ++i) {
      const Closing first = closing_.front();
      T& connection = slots_[first.slot];
      const bool is_still_closed = connection.number == first.number && connection.closed;
      if (is_still_closed && !connection.superseded && now - first.time_ns <= linger_ns) return;
      closing_.pop_front();
      if (!is_still_closed || connection.superseded) continue;
      if (now - connection.last_ns > linger_ns) {
        end_connection(connection);
      } else {
        closing_.push_back({first.slot, first.number, connection.last_ns});
      }
    }
  }

  /// End a connection and its previous ones: pass it to the handler, and free its slot.
  void end_connection(T& connection) {
    if (connection.previous != Tracked::none) end_connection(slots_[connection.previous]);
    if (!connection.superseded) erase(connection);
    on_end_(connection);
    const std::uint32_t slot = connection.slot;
    connection = T{};
    free_.push_back(slot);
    last_ = nullptr;
  }

  // ---------------------------------------------------------------------------------- hash table

  /// Return the position of the endpoints in table_, or the free position to which they belong.
  [[nodiscard]] std::size_t slot_of(const Endpoints& endpoints) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash_of(endpoints) & mask;
    while (table_[slot] != 0) {
      const T& connection = slots_[table_[slot] - 1];
      if (connection.endpoints == endpoints || connection.endpoints.is_reverse_of(endpoints)) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  void grow() {
    std::vector<std::uint32_t> larger(2 * table_.size());
    table_.swap(larger);
    for (const std::uint32_t each : larger) {
      if (each != 0) table_[slot_of(slots_[each - 1].endpoints)] = each;
    }
  }
  /// Remove a connection from table_.
  void erase(const T& connection) {
    const std::size_t mask = table_.size() - 1;
    std::size_t hole = slot_of(connection.endpoints);
    // Move up entries that were displaced because this slot was occupied.
    for (std::size_t at = (hole + 1) & mask; table_[at] != 0; at = (at + 1) & mask) {
      const std::size_t home = hash_of(slots_[table_[at] - 1].endpoints) & mask;
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        table_[hole] = table_[at];
        hole = at;
      }
    }
    table_[hole] = 0;
    --used_;
  }

  OnEnd on_end_;
  std::deque<T> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> table_;  // a connection's slot + 1; 0: free
  std::deque<Closing> closing_;       // closed connections, roughly in order of their last packets
  std::size_t used_ = 0;              // positions of table_ that are not free
  std::uint32_t count_ = 0;
  T* last_ = nullptr;  // the connection that was looked up last
};

}  // namespace nagi::captures
