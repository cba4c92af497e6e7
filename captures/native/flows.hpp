// SPDX-License-Identifier: Apache-2.0
//
// Reconstructs each connection of a capture packet by packet in one pass. Memory grows with the
// number of connections, not with the file: nagi_captures/reading.py has figures.
//
// Sequence numbers are unwrapped: each is interpreted as the value nearest to the highest seen so
// far of its direction (RFC 9293, section 3.4). Every direction stores which numbers it has seen:
// all below the highest except the holes, which are disjoint intervals. The numbers before a
// direction's first packet are a hole as well, unless that packet was the SYN. A packet with
// payload is classified as
//   - a window probe or keep-alive if it has one byte, which is the highest one sent, and the other
//     side's window is 0 or the other side has acknowledged everything (RFC 9293, 3.8.6.1
//     and 3.8.4; these also come without payload, which is how Linux sends them); or if it has one
//     new byte while the other side's window is 0. Such a new byte counts once it is acknowledged,
//     as it may be refused;
//   - a retransmission if some of its bytes have been seen before;
//   - out of order if it begins below the highest number seen and none of its bytes have been seen
//     (RFC 4737): it was reordered before the capture point, or retransmitted after the first copy
//     had been lost before the capture point.
// A direction stores up to `max_holes` holes; beyond that, the lowest hole counts as seen.
//
// Round-trip times are measured at the capture point, from a packet of one direction to a packet of
// the other:
//   - by sequence: from a segment to the first acknowledgement of its end. An acknowledgement gives
//     one sample, of the newest segment it covers. A segment that is retransmitted before it is
//     acknowledged gives none, and neither do segments above it that were sent before: their
//     acknowledgement may be of the copy (Karn's rule), or may have waited for it. The same holds
//     for segments above a hole that is filled, while the segment that fills it gives a sample if
//     it was seen once.
//   - by timestamps (RFC 7323): from the lowest segment with a TSval to the first packet that
//   echoes
//     the TSval and acknowledges this segment, one sample per TSval; none if bytes were sent twice
//     with the TSval.
// SYN and FIN take sequence numbers and are segments in this sense. An RST is only counted: its
// numbers need not make sense.
//
// An acknowledgement gives no sample either if the last byte it acknowledges was not captured, as
// the time of sending of that byte is not known.
//
// A copy of a packet, from another point of the path or resent by the link layer, counts only as a
// copy: see Engine::is_copy().
//
// A SYN may be answered by SYN-ACKs with different numbers (load balancers, proxies). The one that
// agrees with the first acknowledgement or segment after them is valid: see select_syn_ack().
//
// tracking.hpp defines the beginning and the end of a connection. A connection that ends becomes a
// row (flow_columns.hpp).
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
  // measured interval: [start, end)
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t interval_ns = 0;  // interval of the series; 0: no series
  bool relative = false;         // start_ns and end_ns are relative to the first packet in the file
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

struct Direction {
  Counts counts;
  // the counts outside the measured interval; null if there are none
  std::unique_ptr<Counts> outside;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t first_data_ns = 0;
  std::int64_t last_data_ns = 0;      // ignores packets that had already been acknowledged
  std::int64_t ip_bytes_to_data = 0;  // IP bytes up to that packet
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

  [[nodiscard]] Counts inside() const;
  /// Return the bytes that the other side acknowledged, but that no captured packet had.
  [[nodiscard]] std::int64_t uncaptured_bytes() const;

 private:
  friend class Engine;

  struct Hole {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Segment {
    std::int64_t end = 0;
    std::int64_t time_ns = 0;  // unknown: an acknowledgement up to here gives no sample
  };
  struct Stamp {
    std::int64_t time_ns = 0;  // of the lowest segment; unknown: some bytes were sent twice
    std::int64_t begin = 0;    // of the lowest segment
    std::int64_t end = 0;
    std::int64_t top = 0;  // above all segments with this TSval
    std::uint32_t value = 0;
  };
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

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
  bool has_base_ = false;          // base_ is known, from an acknowledgement or
  bool started_ = false;           // from a packet of this direction
  bool sent_syn_ = false;          // without ACK
  bool sent_syn_ack_ = false;      //
  bool fin_seen_ = false;          // next_ includes the number of the FIN
  std::uint8_t shift_ = 0;         // scale of the windows that this side advertises
  std::int32_t last_window_ = -1;  // unscaled, as in the header
  std::uint32_t last_stamp_ = 0;   // TSval of the last segment
  bool has_stamp_ = false;
  bool has_whole_syn_ = false;  // a SYN was captured with all its options
  std::uint16_t last_identification_ = 0;
  std::uint32_t identifications_ = 0;  // how often the identification changed
  std::int64_t probe_ = unknown;       // number of a new byte sent to a closed window
  std::int64_t probe_ns_ = 0;
  // further SYN-ACKs with other numbers; null without any
  std::unique_ptr<std::vector<Packet>> rivals_;
  std::int64_t next_ = 0;         // one above the highest number seen
  std::int64_t low_ = 0;          // no byte below has been seen or is known to be missing
  std::int64_t acked_ = unknown;  // the highest acknowledgement by the other side
  std::vector<Hole> holes_;       // in ascending order, between low_ and next_
  Ring<Segment> outstanding_;
  Ring<Stamp> stamps_;
};

/// Times at which the packets of a handshake were captured.
struct Handshake {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();

  std::int64_t syn_ns = none;
  std::int64_t syn_ack_ns = none;
  std::int64_t ack_ns = none;
  // the SYN was repeated before the SYN-ACK: it is not known which SYN is answered
  bool syn_again = false;
  bool syn_ack_again = false;

  /// Return the time from SYN to SYN-ACK (the round trip between capture point and listener), or
  /// from SYN-ACK to ACK (the round trip between capture point and caller), or `none` if it is not
  /// known.
  [[nodiscard]] std::int64_t to_listener() const {
    return syn_ns == none || syn_ack_ns == none || syn_again ? none : syn_ack_ns - syn_ns;
  }
  [[nodiscard]] std::int64_t to_caller() const {
    return syn_ack_ns == none || ack_ns == none || syn_ack_again ? none : ack_ns - syn_ack_ns;
  }
};

/// The capture point on a direction's path.
enum class CapturePoint : std::int8_t { unknown, source, between, destination };

struct Connection : Tracked {
  // null without any packet or knowledge of the direction
  std::array<std::unique_ptr<Direction>, 2> directions;
  std::unique_ptr<Handshake> handshake;  // null without a SYN
  bool complete_handshake = false;
  // packets were captured at several points: their times are not comparable
  bool captured_at_several_points = false;

  /// Estimate the capture point from round-trip times to both ends, of the handshake and of data.
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
  // bytes in flight after a packet with payload, once the other side has acknowledged something
  std::int64_t in_flight = -1;
  // round-trip samples of the opposite direction, which this packet completes
  std::int64_t rtt_sequence_ns = -1;
  std::int64_t rtt_timestamps_ns = -1;
  std::array<std::int64_t, 8> sack{};  // unwrapped, one for each of the packet's sack_edges
};

class Engine {
 public:
  /// Called with each connection once, when it ends; finish() passes the remaining ones.
  using EndHandler = std::function<void(Connection&)>;

  explicit Engine(const Options& options, EndHandler left = {});

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
  /// Return the options, with the measured interval.
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
  static bool is_further_answer(const Packet& packet, Connection& connection, unsigned number,
                                Direction& direction, Direction& opposite);
  static void select_syn_ack(std::uint32_t after_syn, Connection& connection, unsigned number,
                             Direction& direction, Direction& opposite);
  void accept_probe(Direction& direction, bool inside);
  void add_tcp(const Packet& packet, Connection& connection, unsigned number, bool inside,
               Classification& result);
  static void add_syn(const Packet& packet, Connection& connection, unsigned number,
                      Direction& direction, Direction& opposite);
  void acknowledge(const Packet& packet, Direction& direction, Direction& opposite, bool inside,
                   bool probing, Classification& result);
  void add_timestamps(const Packet& packet, Direction& direction, Direction& opposite, bool segment,
                      bool inside, Classification& result);
  SeriesRow* series_row(Direction& direction, std::int64_t time_ns);
  SeriesRow* add_series_row(Direction& direction, std::int64_t index);
  template <typename T>
  void append(Ring<T>& ring, const T& value, bool answered);

  Options options_;
  EndHandler on_end_;
  Tracker<Connection, OnEnd> tracker_;
  Direction blank_;              // stands in for a direction of which nothing is known
  std::size_t outstanding_ = 0;  // capacity of all rings together
  bool has_origin_ = false;
  std::int64_t origin_ns_ = 0;
  std::vector<Fingerprint> fingerprints_{max_fingerprints};  // fingerprints of the last packets
};

}  // namespace nagi::captures
