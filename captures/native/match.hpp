// SPDX-License-Identifier: Apache-2.0
//
// Compares two captures of one path, `sent` and `received`: each packet of one capture is searched
// in the other capture.
//
// Packets are the same if they agree in addresses, ports, TCP sequence and acknowledgement numbers,
// flags (except ECN's flags), window, timestamps, length of payload, and IPv4 identification. For
// UDP packets without identification (as in IPv6), the first bytes of the payload must agree in
// place of it. If several packets agree in all of these, they are matched in their order.
//
// Offloads of network cards split large segments, or merge small segments, between the two capture
// points (TSO, GSO, GRO, LRO). If a segment is longer than all segments of the other capture in its
// direction, it is cut to the longest length there before it is searched, as a card would do. If
// both captures have large segments, they are cut to the MSS.
//
// Both files are read in parallel, in the order of times after correction by the difference of the
// clocks. The difference is estimated from packets near the beginnings that both captures have;
// without such packets, it is assumed to be 0. A packet counts as lost if it has not been found
// when both files have been read until `longest_delay_ns` after it, or earlier if there are more
// than `max_waiting` packets that have not been found.
//
// The connections of a capture are those of a scan of the capture (tracking.hpp), even if addresses
// and ports are reused. Connections of the two captures are the same if they have a packet in
// common.
//
// The captures are read twice: first to find the smallest delays and which direction of each
// connection is forward, then to count. In the forward direction packets pass `sent` before
// `received`. This follows from the times: the sum of the delays of both directions is positive,
// whatever the difference of the clocks is.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "native/capture_file.hpp"
#include "native/clock_curve.hpp"
#include "native/decode.hpp"
#include "native/distribution.hpp"
#include "native/loss_pattern.hpp"
#include "native/ring.hpp"
#include "native/tracking.hpp"

namespace nagi::captures {

constexpr std::int64_t longest_delay_ns = 10'000'000'000;
constexpr std::size_t max_waiting = 1 << 19;

struct MatchOptions {
  // only packets that were sent in [start_ns, end_ns) count
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  bool complete = false;               // both captures contain all packets that passed them
  std::array<ClockCurve, 2> clocks{};  // all times are converted to the common clock
};

/// One direction of a connection that both captures have. capture.MATCH_COLUMNS explains the
/// counts.
struct MatchedDirection {
  bool forward = false;    // packets pass `sent` before `received`
  std::int64_t pairs = 0;  // packets that both captures have, also outside the measured interval
  std::int64_t sent = 0;
  std::int64_t lost = 0;
  std::int64_t data_sent = 0;
  std::int64_t data_lost = 0;
  std::int64_t unseen = 0;
  std::int64_t uncovered = 0;
  double delay_sum = 0;
  std::int64_t min_delay = std::numeric_limits<std::int64_t>::max();
  Distribution queueing;  // delay - smallest_delay()
  LossPattern pattern;

  /// Return the smallest delay in the whole captures, not only in the measured interval; 0 without
  /// pairs.
  [[nodiscard]] std::int64_t smallest_delay() const {
    return pairs == 0 ? 0 : forward ? min_difference_ : -max_difference_;
  }

 private:
  friend class Matcher;

  [[nodiscard]] std::int64_t largest_delay() const {
    return pairs == 0 ? 0 : forward ? max_difference_ : -min_difference_;
  }

  // Extremes over all pairs of (time at `received` - time at `sent`).
  std::int64_t min_difference_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_difference_ = std::numeric_limits<std::int64_t>::min();
};

/// A connection that both captures have.
struct MatchedConnection {
  std::array<Endpoints, 2> endpoints;      // of direction 0 and of direction 1
  std::array<std::uint32_t, 2> numbers{};  // number of the connection in a scan of either capture
  std::array<MatchedDirection, 2> directions;
};

/// The smallest delay of each direction, or `none`.
struct SmallestDelays {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t forward = none;
  std::int64_t backward = none;
};

/// Compares two captures; see the top of this file.
class Matcher {
 public:
  /// A function that opens a capture at its beginning, 0 for `sent`, 1 for `received`.
  using Open = std::function<std::unique_ptr<CaptureFile>(int)>;

  Matcher(Open open, const MatchOptions& options);
  /// Process up to `packets` packets. Return false when the comparison is complete. Throws
  /// CaptureError.
  bool work(std::int64_t packets);

  [[nodiscard]] std::deque<MatchedConnection>& connections() { return matched_; }
  [[nodiscard]] const std::array<std::string, 2>& damage() const { return damage_; }
  /// Return the smallest delays over all pairs; over pairs in the first tenth of the time between
  /// the first and the last pair; over pairs in the last tenth of this time.
  [[nodiscard]] const SmallestDelays& smallest() const { return smallest_; }
  [[nodiscard]] const SmallestDelays& smallest_first() const { return smallest_first_; }
  [[nodiscard]] const SmallestDelays& smallest_last() const { return smallest_last_; }
  /// Return the time between the first and the last pair.
  [[nodiscard]] std::int64_t span_ns() const { return pairs_last_ns_ - pairs_first_ns_; }

 private:
  struct HashOfEndpoints {
    std::size_t operator()(const Endpoints& ends) const { return hash_of(ends); }
  };
  /// Maps a direction of a connection to the bytes of payload to which its large segments are cut.
  using Sizes = std::unordered_map<Endpoints, std::uint32_t, HashOfEndpoints>;
  /// One capture that is being read.
  struct Input {
    std::unique_ptr<CaptureFile> file;
    Decoder decoder;
    Packet packet;                 // the current packet, if has_packet
    Packet rest;                   // remainder of a large segment
    std::uint32_t cut_length = 0;  // bytes of payload; 0 without a remainder
    std::int64_t file_ns = 0;      // the packet's time by the clock of the file
    bool has_packet = false;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t latest_ns = std::numeric_limits<std::int64_t>::min();  // latest packet processed
    /// Read the next packet, or the next part of a large segment.
    void step(const ClockCurve& clock, const Sizes& sizes);
    void cut();
  };
  struct NoCallback {
    void operator()(const Tracked& /*gone*/) const {}
  };
  using Connections = Tracker<Tracked, NoCallback>;
  /// The state of a connection in one capture.
  struct ConnectionState {
    std::array<Ring<std::int32_t>, 2> waiting;  // entries by direction, in the order of the capture
    std::int32_t matched = -1;                  // index in matched_
    bool is_reversed = false;  // direction 0 here is direction 1 of the matched connection
    std::array<Endpoints, 2> endpoints;      // this array and the next ones: by direction
    std::array<std::uint32_t, 2> longest{};  // most bytes of payload in a packet
    std::array<std::uint32_t, 2> mss{};      // 0 if not seen
  };
  /// Identifies a direction of a connection of one capture.
  struct FlowId {
    unsigned side = 0;
    std::uint32_t number = 0;
    unsigned direction = 0;
  };
  /// A packet that is not settled. A packet is settled when it is counted as found or lost, which
  /// happens in the order of the capture: it may have to wait for an earlier packet.
  struct Entry {
    std::uint64_t key = 0;
    std::int64_t time_ns = 0;
    std::int64_t delay_ns = 0;
    std::int32_t next = -1;  // next entry with the same key, or next free entry
    std::int32_t last = -1;  // in the first entry with a key: the last one with it
    FlowId flow;
    bool is_found = false;
    bool data = false;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t entry = -1;
  };

  /// Return a hash of the fields in which packets must agree to be the same, and of the side.
  static std::uint64_t key_of(const Packet& packet, unsigned side);
  /// Return the capture that a direction's packets pass first.
  static unsigned origin(const MatchedDirection& direction) { return direction.forward ? 0 : 1; }
  void estimate_difference();
  void begin_pass();
  bool find_sizes();
  void restart();
  void end_first_pass();
  void process(unsigned side);
  ConnectionState& state_of(const FlowId& flow) { return states_[flow.side][flow.number]; }
  MatchedDirection* matched(const FlowId& flow);
  void link(const std::array<FlowId, 2>& pair, const Endpoints& endpoints);
  void record_pair(MatchedDirection& direction, std::int64_t difference_ns, std::int64_t sent_ns);
  std::int32_t enqueue(const FlowId& flow, const Packet& packet);
  void settle(const FlowId& flow, std::size_t max_queue, bool force);
  void settle_all();
  void count(MatchedDirection& direction, unsigned side, const Entry& entry);
  std::size_t slot_of(std::uint64_t key) const;
  void insert(std::int32_t entry);
  void grow();
  void remove(std::int32_t index);
  std::int32_t remove_first(std::size_t slot);

  Open open_;
  MatchOptions options_;
  int pass_ = 0;  // 0: not begun, 1 and 2: reading, 3: done
  std::array<Input, 2> inputs_;
  Sizes sizes_;
  std::array<std::string, 2> damage_;
  std::int64_t first_difference_ns_ = 0;  // rough estimate of time at `received` - time at `sent`
  std::int64_t difference_ns_ = 0;        // current estimate of this difference
  std::array<std::unique_ptr<Connections>, 2> trackers_;  // this array and the next one: by capture
  std::array<std::vector<ConnectionState>, 2> states_;
  std::deque<MatchedConnection> matched_;
  std::vector<Entry> entries_;
  std::int32_t free_ = -1;   // first free entry
  std::size_t waiting_ = 0;  // number of entries that are not free
  std::vector<Slot> slots_;  // hash table of the entries not found, by key
  std::size_t used_ = 0;
  SmallestDelays smallest_;
  SmallestDelays smallest_first_;
  SmallestDelays smallest_last_;
  std::int64_t pairs_first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t pairs_last_ns_ = std::numeric_limits<std::int64_t>::min();
  std::array<std::int64_t, 2> first_ns_{};
  std::array<std::int64_t, 2> last_ns_{};
};

}  // namespace nagi::captures
