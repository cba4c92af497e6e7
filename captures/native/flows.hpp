// SPDX-License-Identifier: Apache-2.0
//
// Reconstructs the connections of a capture, packet by packet, in one pass. Memory grows with the
// number of connections, not with the size of the file; nagi_captures/reading.py has figures.
//
// Sequence numbers are unwrapped to 64 bits: a number is taken as the value that is nearest to the
// highest number captured so far in its direction (RFC 9293, section 3.4). Every direction stores
// which numbers have been captured: all numbers below the highest one except the holes, which are
// disjoint intervals. The numbers below a direction's first packet are a hole as well, unless this
// packet was the SYN. A packet is classified as
//   - a window probe or keep-alive if it has at most one byte, whose number is the highest number
//     sent, and the window of the other side is 0 or the other side has acknowledged everything
//     (RFC 9293, sections 3.8.6.1 and 3.8.4; Linux sends these without payload);
//   - a window probe if it has one new byte while the window of the other side is 0. The byte
//     counts as data only when it is acknowledged, because the other side may discard it;
//   - a retransmission if some of its bytes have been captured before;
//   - out of order if it begins below the highest number captured and none of its bytes have been
//     captured (RFC 4737): it was reordered before the capture point, or retransmitted after the
//     first copy had been lost before the capture point.
// A direction stores up to `max_holes` holes. If there are more, the lowest hole counts as
// captured.
//
// Round-trip times are measured at the capture point, from a packet of one direction to a packet of
// the other direction:
//   - by sequence: from a segment to the first acknowledgement of its end. An acknowledgement gives
//     one sample, of the newest segment that it covers. A segment that is retransmitted before it
//     is acknowledged gives no sample, because the acknowledgement may be for either copy (Karn's
//     rule). Segments with higher numbers that were sent before the retransmission give none
//     either, because their acknowledgement may have waited for the retransmission. The same holds
//     for segments above a hole that is filled. The segment that fills a hole gives a sample if it
//     was captured only once. An acknowledgement gives no sample if the last byte that it
//     acknowledges was not captured, because the time of sending is unknown.
//   - by timestamps (RFC 7323): from the lowest segment with a TSval to the first packet that
//     echoes the TSval and acknowledges this segment. Each TSval gives one sample, or none if bytes
//     were sent twice with it.
// SYN and FIN take sequence numbers and count as segments here. Of an RST, only the number of
// packets is counted, because its sequence numbers need not be valid.
//
// A copy of a packet, from another point of the path or sent again by the link layer, counts only
// as a copy: see Engine::is_copy().
//
// A SYN may be answered by several SYN-ACKs with different numbers (load balancers, proxies). The
// SYN-ACK that agrees with the first acknowledgement or segment after it is valid: see
// select_syn_ack().
//
// tracking.hpp defines the beginning and the end of a connection. When a connection ends, it is
// stored as two rows (flow_columns.hpp).
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
/// The maximum number of unacknowledged segments and timestamps over all connections.
constexpr std::size_t max_outstanding = 1 << 20;

struct Options {
  // the measured interval [start_ns, end_ns), to which counts named `inside` refer
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t interval_ns = 0;  // interval of the series; 0: no series
  bool relative = false;         // start_ns and end_ns are relative to the first packet in the file
};

/// Counts of packets and bytes of one direction.
struct Counts {
  std::int64_t packets = 0;
  std::int64_t ip_bytes = 0;
  std::int64_t payload_bytes = 0;
  std::int64_t data_packets = 0;
  std::int64_t first_time_bytes = 0;
  std::int64_t retransmitted_packets = 0;
  std::int64_t retransmitted_bytes = 0;
  std::int64_t out_of_order_packets = 0;

  /// Add after - before.
  void add_difference(const Counts& before, const Counts& after);
};

/// Count, sum and extremes of a quantity in bytes.
struct Extent {
  std::int64_t count = 0;
  std::int64_t sum = 0;
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  std::int64_t max = std::numeric_limits<std::int64_t>::min();

  void add(std::int64_t value) {
    ++count;
    sum += value;
    min = value < min ? value : min;
    max = value > max ? value : max;
  }
};

/// One interval of one direction's time series.
struct SeriesRow {
  std::int64_t index = 0;  // number of the interval
  std::int64_t payload_bytes = 0;
  std::int64_t first_time_bytes = 0;
  std::int64_t retransmitted_packets = 0;
  std::int64_t max_in_flight = -1;  // -1 without a value
  std::int64_t window = -1;
  std::int64_t rtt_count = 0;
  double rtt_sum = 0;
  std::int64_t max_rtt = 0;
};

/// One direction of a connection.
struct Direction {
  Counts counts;
  // the counts outside the measured interval; null if there are none
  std::unique_ptr<Counts> outside;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t first_data_ns = 0;
  std::int64_t last_data_ns = 0;      // without packets that had already been acknowledged
  std::int64_t ip_bytes_to_data = 0;  // IP bytes up to the packet of last_data_ns
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
  std::unique_ptr<Distribution> rtt_sequence;  // null without samples
  std::unique_ptr<Distribution> rtt_timestamps;
  std::vector<SeriesRow> series;

  /// Return the counts within the measured interval.
  [[nodiscard]] Counts inside() const;
  /// Return the number of bytes that the other side acknowledged, but that were not captured.
  [[nodiscard]] std::int64_t uncaptured_bytes() const;

 private:
  friend class Engine;

  struct Hole {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  /// A segment that has not been acknowledged.
  struct Segment {
    std::int64_t end = 0;
    std::int64_t time_ns = 0;  // `unknown` if an acknowledgement of `end` must give no sample
  };
  /// A TSval that has not been echoed.
  struct Stamp {
    std::int64_t time_ns = 0;  // of the lowest segment; `unknown` if some bytes were sent twice
    std::int64_t begin = 0;    // of the lowest segment
    std::int64_t end = 0;      // of the lowest segment
    std::int64_t top = 0;      // end of the highest segment with this TSval
    std::uint32_t value = 0;   // the TSval
  };
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

  /// Convert a number in a packet to the unwrapped number that is nearest to next_.
  [[nodiscard]] std::int64_t unwrap(std::uint32_t number) const {
    return next_ + static_cast<std::int32_t>(number - (base_ + static_cast<std::uint32_t>(next_)));
  }
  void renumber(std::uint32_t first);
  void add_data(std::int64_t time_ns, std::uint32_t payload, bool outstanding);
  void count_outside(const Counts& before);
  std::int64_t add_interval(std::int64_t begin, std::int64_t end);
  std::int64_t close_hole(std::int64_t begin, std::int64_t end);
  void add_hole(std::size_t place, Hole hole);
  [[nodiscard]] bool has_seen(std::int64_t byte) const;

  std::uint32_t base_ = 0;         // the sequence number that is 0 when unwrapped
  bool has_base_ = false;          // base_ is known
  bool started_ = false;           // base_ is known from a packet of this direction
  bool sent_syn_ = false;          // a SYN without ACK
  bool sent_syn_ack_ = false;      // a SYN with ACK
  bool fin_seen_ = false;          // next_ includes the number of the FIN
  std::uint8_t shift_ = 0;         // scale of the windows that this side advertises
  std::int32_t last_window_ = -1;  // unscaled, as in the header
  std::uint32_t last_stamp_ = 0;   // TSval of the last segment
  bool has_stamp_ = false;
  bool has_whole_syn_ = false;  // a SYN was captured with all its options
  std::uint16_t last_identification_ = 0;
  std::uint32_t identifications_ = 0;  // how often the identification changed
  std::int64_t probe_ = unknown;       // number of a new byte that was sent while the window was 0
  std::int64_t probe_ns_ = 0;          // time of sending this byte
  // further SYN-ACKs, with other numbers than the first SYN-ACK; null if there are none
  std::unique_ptr<std::vector<Packet>> rivals_;
  std::int64_t next_ = 0;         // one above the highest number captured
  std::int64_t low_ = 0;          // lowest number captured; `unknown` after a SYN
  std::int64_t acked_ = unknown;  // the highest acknowledgement by the other side
  std::vector<Hole> holes_;       // in ascending order, between low_ and next_
  Ring<Segment> outstanding_;     // in ascending order
  Ring<Stamp> stamps_;            // in ascending order
};

/// Times at which the packets of a handshake were captured.
struct Handshake {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

  std::int64_t syn_ns = none;
  std::int64_t syn_ack_ns = none;
  std::int64_t ack_ns = none;
  // The SYN was repeated before the SYN-ACK, so it is unknown to which SYN the SYN-ACK responds.
  bool syn_again = false;
  bool syn_ack_again = false;  // the SYN-ACK was repeated before the ACK

  /// Return the time from SYN to SYN-ACK, which is the round-trip time between capture point and
  /// listener, or `none` if it is unknown.
  [[nodiscard]] std::int64_t to_listener() const {
    return syn_ns == none || syn_ack_ns == none || syn_again ? none : syn_ack_ns - syn_ns;
  }
  /// Return the time from SYN-ACK to ACK, which is the round-trip time between capture point and
  /// caller, or `none` if it is unknown.
  [[nodiscard]] std::int64_t to_caller() const {
    return syn_ack_ns == none || ack_ns == none || syn_ack_again ? none : ack_ns - syn_ack_ns;
  }
};

/// The position of the capture point on the path of a direction.
enum class CapturePoint : std::int8_t { unknown, source, between, destination };

struct Connection : Tracked {
  // null if no packet of the direction, and no acknowledgement for it, was captured
  std::array<std::unique_ptr<Direction>, 2> directions;
  std::unique_ptr<Handshake> handshake;  // null without a SYN
  bool complete_handshake = false;
  // Packets were captured at several points, so their times are not comparable.
  bool captured_at_several_points = false;

  /// Estimate the position of the capture point from the smallest round-trip times to both ends.
  [[nodiscard]] CapturePoint capture_point(unsigned direction) const;
};

/// The classification of one packet.
struct Classification {
  std::uint32_t connection = 0;
  std::uint8_t direction = 0;
  bool retransmission = false;
  bool out_of_order = false;
  bool probe = false;  // keep-alive or window probe
  bool duplicate_ack = false;
  bool copy = false;  // copy of a packet captured before; the other fields are not set
  std::uint32_t new_bytes = 0;
  std::int64_t sequence = 0;
  std::int64_t acknowledgement = -1;
  std::int64_t window = 0;
  // bytes in flight after a packet with payload; -1 before the first acknowledgement
  std::int64_t in_flight = -1;
  // round-trip times of the opposite direction that end with this packet; -1 if there are none
  std::int64_t rtt_sequence_ns = -1;
  std::int64_t rtt_timestamps_ns = -1;
  std::array<std::int64_t, 8> sack{};  // unwrapped, one for each of the packet's sack_edges
};

/// Reconstructs connections from their packets.
class Engine {
 public:
  /// A function that is called once with each connection, when the connection ends.
  using EndHandler = std::function<void(Connection&)>;

  explicit Engine(const Options& options, EndHandler on_end = {});

  /// Process a packet, and return its classification.
  Classification add(const Packet& packet);
  /// Convert a measured interval that is relative to `time_ns` to times since the epoch.
  void resolve_relative_times(std::int64_t time_ns);
  /// End all connections, in the order of their numbers.
  void finish();

  /// Return how many connections have begun.
  [[nodiscard]] std::uint32_t count() const { return tracker_.count(); }
  /// Return the connection with a number, or null if it has ended.
  [[nodiscard]] Connection* connection(std::uint32_t number);
  /// Return the time at which the first interval of the series begins.
  [[nodiscard]] std::int64_t origin_ns() const { return origin_ns_; }
  /// Return the options; a relative interval has been converted to times since the epoch.
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  struct OnEnd {
    Engine* engine;
    void operator()(Connection& connection) const { engine->end_connection(connection); }
  };
  struct Fingerprint {
    std::uint64_t value = 0;
    std::int64_t time_ns = 0;
  };
  static constexpr std::size_t bucket_fingerprints = 4;
  static constexpr std::size_t max_fingerprints = 1 << 16;  // 1 MiB

  void set_origin(std::int64_t time_ns);
  void end_connection(Connection& connection);
  bool is_copy(const Packet& packet, const Classification& result, Connection& connection,
               Direction& direction);
  static bool handle_further_syn_ack(const Packet& packet, Connection& connection, unsigned number,
                                     Direction& direction, Direction& opposite);
  static void select_syn_ack(std::uint32_t after_syn, Connection& connection, unsigned number,
                             Direction& direction, Direction& opposite);
  void accept_probe(Direction& direction, bool inside);
  void add_tcp(const Packet& packet, Connection& connection, unsigned number, bool inside,
               Classification& result);
  static void add_syn(const Packet& packet, Connection& connection, unsigned number,
                      Direction& direction, Direction& opposite);
  void acknowledge(const Packet& packet, Direction& direction, Direction& opposite, bool inside,
                   bool is_segment_or_probe, Classification& result);
  void add_timestamps(const Packet& packet, Direction& direction, Direction& opposite,
                      bool is_segment, bool inside, Classification& result);
  SeriesRow* series_row(Direction& direction, std::int64_t time_ns);
  SeriesRow* add_series_row(Direction& direction, std::int64_t index);
  template <typename T>
  void append(Ring<T>& ring, const T& value, bool answered);

  Options options_;
  EndHandler on_end_;
  Tracker<Connection, OnEnd> tracker_;
  Direction blank_;              // used in place of a direction that is null
  std::size_t outstanding_ = 0;  // capacity of all rings together
  bool has_origin_ = false;
  std::int64_t origin_ns_ = 0;
  std::vector<Fingerprint> fingerprints_{max_fingerprints};  // fingerprints of the last packets
};

}  // namespace nagi::captures
