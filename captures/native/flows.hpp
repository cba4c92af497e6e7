// SPDX-License-Identifier: Apache-2.0
//
// What every connection of a capture did, found packet by packet in one pass. Memory grows with the
// connections, not with the file: nagi_captures/reading.py has figures.
//
// Sequence numbers are unwrapped: each is taken for the one nearest to the highest seen so far of
// its direction (RFC 9293, section 3.4). Every direction knows which numbers it has seen: all below
// the highest but the holes, which are disjoint intervals. What lies before a direction's first
// packet is a hole, too, unless that packet was the SYN. A packet with payload is
//   - a window probe or keep-alive if it has one byte from one below the highest, and the other
//     side's window is 0, or it has acknowledged everything (RFC 9293, 3.8.6.1 and 3.8.4; these
//     also come with no payload, which is how Linux sends them), or one new byte while the other
//     side's window is 0. Such a byte counts once it is acknowledged: it may be refused;
//   - a retransmission if some of its bytes have been seen before;
//   - out of order if it begins below the highest number seen and none of its bytes have been seen
//     (RFC 4737): reordered on its way to the place of capture, or retransmitted after the first
//     copy was lost before it.
// A direction remembers up to `max_holes` holes; with more, the lowest counts as seen.
//
// Round-trip times are from a packet of one direction to one of the other, at the place of capture:
//   - by sequence: from the segment to the first acknowledgement of its end. An acknowledgement
//     gives one sample, of the newest segment it covers. What is retransmitted before it is
//     acknowledged gives none, nor do segments above it that were sent before: the acknowledgement
//     they get may be of the copy (Karn's rule), or have waited for it. The same holds for segments
//     above a hole that is filled, while what fills it, seen once, gives a sample.
//   - by timestamps (RFC 7323): from the lowest segment with a TSval to the first packet that
//     echoes it and acknowledges this segment, a sample a TSval; none if bytes were sent twice with
//     it.
// SYN and FIN take sequence numbers and are segments in this sense. Nothing is taken from an RST
// but that it was there: its numbers need not make sense.
//
// An acknowledgement gives no sample either if the byte it acknowledges last was not captured: who
// knows when that was sent.
//
// Copies of a packet, from another place on its way or sent again by the link layer, are counted as
// copies and nowhere else: Engine::is_copy().
//
// A SYN may be answered by SYN-ACKs with several numbers (load balancers, proxies). What the first
// acknowledgement or segment after them agrees with holds (settle()).
//
// What begins and what ends a connection is in tracking.hpp. A connection that leaves becomes a row
// (flow_columns.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "native/decode.hpp"
#include "native/distribution.hpp"
#include "native/ring.hpp"
#include "native/tracking.hpp"

namespace nagi::captures {

constexpr std::size_t max_holes = 4096;
/// Segments and timestamps that wait for their acknowledgements, over all connections.
constexpr std::size_t max_outstanding = 1 << 20;

struct Options {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::min();  // measured: [start, end)
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t interval_ns = 0;  // of the series; 0: none
  bool relative = false;         // start_ns and end_ns count from the first packet in the file
};

struct Counts {
  std::int64_t packets = 0;
  std::int64_t ip_bytes = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t data_packets = 0;
  std::int64_t first_time_bytes = 0;
  std::int64_t retransmitted_packets = 0;
  std::int64_t retransmitted_bytes = 0;
  std::int64_t out_of_order_packets = 0;

  void add_difference(const Counts& before, const Counts& after);
};

/// Extremes and mean of something counted in bytes.
struct Extent {
  std::int64_t count = 0;
  std::int64_t sum = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t value) {
    ++count;
    sum += value;
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
};

/// One interval of one direction.
struct SeriesRow {
  std::int64_t index = 0;  // of the interval
  std::int64_t payload_bytes = 0;
  std::int64_t first_time_bytes = 0;
  std::int64_t retransmitted_packets = 0;
  std::int64_t in_flight_most = -1;  // -1: none
  std::int64_t window = -1;
  std::int64_t rtt_count = 0;
  double rtt_sum = 0;
  std::int64_t rtt_most = 0;
};

struct Direction {
  Counts counts;
  std::unique_ptr<Counts> outside;  // of these, packets outside of what is measured; null: none
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t first_data_ns = 0;
  std::int64_t last_data_ns = 0;      // without what was acknowledged before
  std::int64_t ip_bytes_to_data = 0;  // in packets up to that one
  std::uint32_t duplicate_acks = 0;
  std::uint32_t sack_packets = 0;
  std::uint32_t sack_blocks = 0;
  std::uint32_t keep_alives = 0;
  std::uint32_t zero_window_packets = 0;
  std::uint32_t window_probes = 0;
  std::uint32_t syn_packets = 0;
  std::uint32_t fin_packets = 0;
  std::uint32_t rst_packets = 0;
  std::uint32_t captured_twice = 0;
  std::int32_t mss = -1;
  std::int8_t window_scale = -1;
  bool sack_permitted = false;
  bool timestamps = false;
  Extent in_flight;
  Extent window;
  std::unique_ptr<Distribution> rtt_sequence;  // null: no sample
  std::unique_ptr<Distribution> rtt_timestamps;
  std::vector<SeriesRow> series;

  [[nodiscard]] Counts inside() const;
  /// Bytes that the other side acknowledged, but no packet had.
  [[nodiscard]] std::int64_t uncaptured_bytes() const;

 private:
  friend class Engine;

  struct Hole {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Segment {
    std::int64_t end = 0;
    std::int64_t time_ns = 0;  // unknown: what is acknowledged up to here gives no sample
  };
  struct Stamp {
    std::int64_t time_ns = 0;  // of the lowest segment; unknown: something was sent twice
    std::int64_t begin = 0;    // of that segment
    std::int64_t end = 0;
    std::int64_t top = 0;  // above all segments with this value
    std::uint32_t value = 0;
  };
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

  [[nodiscard]] std::int64_t unwrap(std::uint32_t number) const {
    return next_ + static_cast<std::int32_t>(number - (base_ + static_cast<std::uint32_t>(next_)));
  }
  void renumber(std::uint32_t first);
  void add_data(std::int64_t time_ns, std::uint32_t payload, bool outstanding);
  void leave_out(const Counts& before);
  std::int64_t see(std::int64_t begin, std::int64_t end);
  std::int64_t fill(std::int64_t begin, std::int64_t end);
  void add_hole(std::size_t place, Hole hole);
  [[nodiscard]] bool has_seen(std::int64_t byte) const;

  std::uint32_t base_ = 0;         // the number that is 0 unwrapped
  bool has_base_ = false;          // from an acknowledgement, or
  bool started_ = false;           // from a packet of this direction
  bool sent_syn_ = false;          // without ACK
  bool sent_syn_ack_ = false;      //
  bool fin_seen_ = false;          // its number is among next_
  std::uint8_t shift_ = 0;         // of the windows it advertises
  std::int32_t last_window_ = -1;  // as in the header
  std::uint32_t last_stamp_ = 0;   // of a segment
  bool has_stamp_ = false;
  bool has_whole_syn_ = false;  // a SYN whose options are whole
  std::uint16_t last_identification_ = 0;
  std::uint32_t identifications_ = 0;  // how often it was another than before
  std::int64_t probe_ = unknown;       // a new byte sent to a closed window
  std::int64_t probe_ns_ = 0;
  std::unique_ptr<std::vector<Packet>> rivals_;  // SYN-ACKs with other numbers; null: none
  std::int64_t next_ = 0;                        // one above the highest number seen
  std::int64_t low_ = 0;          // nothing below has been seen, nor is known to be absent
  std::int64_t acked_ = unknown;  // the highest acknowledgement by the other side
  std::vector<Hole> holes_;       // ascending, between low_ and next_
  Ring<Segment> outstanding_;
  Ring<Stamp> stamps_;
};

/// When the packets of a handshake were captured.
struct Handshake {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

  std::int64_t syn_ns = none;
  std::int64_t syn_ack_ns = none;
  std::int64_t ack_ns = none;
  bool syn_again = false;  // before the SYN-ACK: which of them is answered is not known
  bool syn_ack_again = false;

  /// From SYN to SYN-ACK, from SYN-ACK to ACK: to the listening side and back, to the other and
  /// back. `none` if not known.
  [[nodiscard]] std::int64_t to_listener() const {
    return syn_ns == none || syn_ack_ns == none || syn_again ? none : syn_ack_ns - syn_ns;
  }
  [[nodiscard]] std::int64_t to_caller() const {
    return syn_ack_ns == none || ack_ns == none || syn_ack_again ? none : ack_ns - syn_ack_ns;
  }
};

/// The place of capture on a direction's path.
enum class Place : std::int8_t { unknown, source, between, destination };

struct Connection : Tracked {
  std::array<std::unique_ptr<Direction>, 2> directions;  // null: no packet, and nothing known
  std::unique_ptr<Handshake> handshake;                  // null: no SYN
  bool complete_handshake = false;
  bool copied_apart = false;  // packets were captured at several places: times do not fit together

  /// Estimated from round-trip times there and back: of the handshake and of data.
  [[nodiscard]] Place captured_at(unsigned direction) const;
};

/// What is known of one packet.
struct Seen {
  std::uint32_t connection = 0;
  std::uint8_t direction = 0;
  bool retransmission = false;
  bool out_of_order = false;
  bool probe = false;  // keep-alive or window probe
  bool duplicate_ack = false;
  bool copy = false;  // of a packet captured before; nothing else is known of it
  std::uint32_t new_bytes = 0;
  std::int64_t sequence = 0;
  std::int64_t acknowledgement = -1;
  std::int64_t window = 0;
  std::int64_t in_flight = -1;        // with payload, once something was acknowledged
  std::int64_t rtt_sequence_ns = -1;  // samples that the packet gives of the other direction
  std::int64_t rtt_timestamps_ns = -1;
  std::array<std::int64_t, 8> sack{};  // of the packet's sack_edges
};

class Engine {
 public:
  /// Called with each connection once, when it leaves; the rest by finish().
  using Left = std::function<void(Connection&)>;

  explicit Engine(const Options& options, Left left = {});

  Seen add(const Packet& packet);
  /// Makes relative times of what is measured times since the epoch.
  void count_from(std::int64_t time_ns);
  /// Lets all connections leave, in the order of their numbers.
  void finish();

  /// How many connections there have been.
  [[nodiscard]] std::uint32_t count() const { return tracker_.count(); }
  /// A connection by its number; null if it has left.
  [[nodiscard]] Connection* connection(std::uint32_t number);
  /// Where the series' first interval begins.
  [[nodiscard]] std::int64_t origin_ns() const { return origin_ns_; }
  /// What is measured.
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  struct Gone {
    Engine* engine;
    void operator()(Connection& connection) const { engine->leave(connection); }
  };
  struct Print {
    std::uint64_t value = 0;
    std::int64_t time_ns = 0;
  };
  static constexpr std::size_t bucket_prints = 4;
  static constexpr std::size_t prints = 1 << 16;  // 1 MiB

  void begin(std::int64_t time_ns);
  void leave(Connection& connection);
  bool is_copy(const Packet& packet, const Seen& seen, Connection& connection, Direction& mine);
  static bool answers_again(const Packet& packet, Connection& connection, unsigned number,
                            Direction& mine, Direction& other);
  static void settle(std::uint32_t after_syn, Connection& connection, unsigned number,
                     Direction& mine, Direction& other);
  void accept_probe(Direction& direction, bool inside);
  void add_tcp(const Packet& packet, Connection& connection, unsigned number, bool inside,
               Seen& seen);
  static void open(const Packet& packet, Connection& connection, unsigned number, Direction& mine,
                   Direction& other);
  void acknowledge(const Packet& packet, Direction& mine, Direction& other, bool inside,
                   bool probing, Seen& seen);
  void stamp(const Packet& packet, Direction& mine, Direction& other, bool segment, bool inside,
             Seen& seen);
  SeriesRow* row(Direction& direction, std::int64_t time_ns);
  SeriesRow* new_row(Direction& direction, std::int64_t index);
  template <typename T>
  void remember(Ring<T>& ring, const T& value, bool answered);

  Options options_;
  Left left_;
  Tracker<Connection, Gone> tracker_;
  Direction blank_;              // what stands for a direction of which nothing is known
  std::size_t outstanding_ = 0;  // room in all rings
  bool has_origin_ = false;
  std::int64_t origin_ns_ = 0;
  std::vector<Print> prints_{prints};  // of the last packets
};

}  // namespace nagi::captures
