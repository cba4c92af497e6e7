// SPDX-License-Identifier: Apache-2.0
//
// Two captures of one path: each packet of one is looked for in the other.
//
// Packets are the same if they agree in addresses, ports, TCP sequence and acknowledgement numbers,
// flags (but for ECN's), window, timestamps, length of payload, and IPv4 identification, or where
// UDP has none (as in IPv6) the first bytes of the payload. Several that agree in all of it are
// matched in their order.
//
// Network cards cut large segments, or join small ones, on the other side of the place of capture
// (TSO, GSO, GRO, LRO). A segment that is longer than the longest one the other capture has of the
// same direction is cut to that length before it is looked for, as a card would. If both captures
// have them, the MSS says how long they are.
//
// Both files are read side by side, by their times and the difference of their clocks. That is
// found from packets near their beginnings that both have; if there are none, clocks are taken for
// equal. A packet counts as lost when both files have been read to `longest_delay_ns` after it and
// it has not been found, earlier if more than `max_waiting` wait. Where nothing is captured, no
// time passes.
//
// Each capture's connections are those of a scan of it (tracking.hpp), also where addresses and
// ports are used again. One of either capture are the same connection if they have a packet in
// common.
//
// They are read twice: first for the smallest delays and to see which way each direction of a
// connection goes, then for everything else. The way follows from the times: in one direction
// packets are captured at `sent` first, in the other at `received`, and forth and back together
// take a positive time by any two clocks.
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
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::min();  // of sending: [start, end)
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();
  bool complete = false;               // both captures have all that passed them
  std::array<ClockCurve, 2> clocks{};  // times are by the common clock throughout
};

struct MatchedDirection {
  bool forward = false;
  std::int64_t pairs = 0;  // in the whole captures
  std::int64_t sent = 0;
  std::int64_t lost = 0;
  std::int64_t data_sent = 0;
  std::int64_t data_lost = 0;
  std::int64_t unseen = 0;
  std::int64_t uncovered = 0;
  double delay_sum = 0;
  std::int64_t delay_least = std::numeric_limits<std::int64_t>::max();
  Distribution queueing;  // delay - smallest_delay()
  LossPattern pattern;

  /// Over the whole captures, not only what is measured; 0 without pairs.
  [[nodiscard]] std::int64_t smallest_delay() const {
    return pairs == 0 ? 0 : forward ? least_ : -most_;
  }

 private:
  friend class Matcher;

  [[nodiscard]] std::int64_t largest_delay() const {
    return pairs == 0 ? 0 : forward ? most_ : -least_;
  }

  // Time at `received` - time at `sent`.
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_ = std::numeric_limits<std::int64_t>::min();
};

/// A connection that both captures have.
struct MatchedConnection {
  std::array<Endpoints, 2> endpoints;      // of direction 0, of direction 1
  std::array<std::uint32_t, 2> numbers{};  // of the connection in a scan of either capture
  std::array<MatchedDirection, 2> directions;
};

/// Smallest delays; the largest number where there is none.
struct SmallestDelays {
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t forward = none;
  std::int64_t backward = none;
};

class Matcher {
 public:
  /// `open` gives either capture from its beginning: 0 `sent`, 1 `received`.
  using Open = std::function<std::unique_ptr<CaptureFile>(int)>;

  Matcher(Open open, const MatchOptions& options);
  /// Does a piece of the work; false when all is done. Throws CaptureError.
  bool work(std::int64_t packets);

  [[nodiscard]] std::deque<MatchedConnection>& connections() { return matched_; }
  [[nodiscard]] const std::array<std::string, 2>& damage() const { return damage_; }
  /// Of everything; of the first and of the last tenth of the time between first and last pair.
  [[nodiscard]] const SmallestDelays& smallest() const { return smallest_; }
  [[nodiscard]] const SmallestDelays& smallest_first() const { return smallest_first_; }
  [[nodiscard]] const SmallestDelays& smallest_last() const { return smallest_last_; }
  /// Time between first and last pair.
  [[nodiscard]] std::int64_t span_ns() const { return pairs_last_ns_ - pairs_first_ns_; }

 private:
  struct HashOfEndpoints {
    std::size_t operator()(const Endpoints& ends) const { return hash_of(ends); }
  };
  /// A direction of a connection -> the bytes of payload to which its large segments are cut.
  using Sizes = std::unordered_map<Endpoints, std::uint32_t, HashOfEndpoints>;
  struct Input {
    std::unique_ptr<CaptureFile> file;
    Decoder decoder;
    Packet packet;
    Packet rest;               // of a large segment
    std::uint32_t cut_at = 0;  // bytes of payload; 0: there is no rest
    std::int64_t file_ns = 0;  // the packet's time by the file
    bool has_packet = false;
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    std::int64_t taken_ns = std::numeric_limits<std::int64_t>::min();  // latest packet taken
    void step(const ClockCurve& clock, const Sizes& sizes);
    void cut();
  };
  struct Nothing {
    void operator()(const Tracked& /*gone*/) const {}
  };
  using Connections = Tracker<Tracked, Nothing>;
  /// What belongs to a connection of one capture, by its number.
  struct Local {
    std::array<Ring<std::int32_t>, 2> waiting;  // entries by direction, in the capture's order
    std::int32_t matched = -1;                  // place in matched_
    bool turned = false;                        // its direction 0 is direction 1 there
    std::array<Endpoints, 2> endpoints;         // by direction, as the next
    std::array<std::uint32_t, 2> longest{};     // bytes of payload of a packet
    std::array<std::uint32_t, 2> mss{};         // 0: not seen
  };
  /// A direction of a connection of one capture.
  struct Whose {
    unsigned side = 0;
    std::uint32_t number = 0;
    unsigned direction = 0;
  };
  /// A packet whose fate, or that of one before it, is open.
  struct Entry {
    std::uint64_t key = 0;
    std::int64_t time_ns = 0;
    std::int64_t delay_ns = 0;
    std::int32_t next = -1;  // that looks the same; or the next free one
    std::int32_t last = -1;  // of these, in the first of them
    Whose whose;
    bool found = false;
    bool data = false;
  };
  struct Slot {
    std::uint64_t key = 0;
    std::int32_t entry = -1;
  };

  static std::uint64_t key_of(const Packet& packet, unsigned side);
  static unsigned origin(const MatchedDirection& direction) { return direction.forward ? 0 : 1; }
  void estimate_difference();
  void begin_pass();
  bool find_sizes();
  void begin_again();
  void end_first_pass();
  void take(unsigned side);
  Local& local(const Whose& whose) { return locals_[whose.side][whose.number]; }
  MatchedDirection* matched(const Whose& whose);
  void link(const std::array<Whose, 2>& pair, const Endpoints& endpoints);
  void note(MatchedDirection& direction, std::int64_t difference_ns, std::int64_t sent_side_ns);
  std::int32_t wait(const Whose& whose, const Packet& packet);
  void settle(const Whose& whose, std::size_t most, bool all);
  void settle_all();
  void decide(MatchedDirection& direction, unsigned side, const Entry& entry);
  std::size_t slot_of(std::uint64_t key) const;
  void insert(std::int32_t entry);
  void grow();
  void remove(std::int32_t place);
  std::int32_t remove_first(std::size_t slot);

  Open open_;
  MatchOptions options_;
  int pass_ = 0;  // 0: to begin, 1 and 2: reading, 3: done
  std::array<Input, 2> inputs_;
  Sizes sizes_;
  std::array<std::string, 2> damage_;
  std::int64_t first_difference_ns_ = 0;  // time at `received` - time at `sent`, roughly
  std::int64_t difference_ns_ = 0;        // the same, followed
  std::array<std::unique_ptr<Connections>, 2> trackers_;  // by capture, as the next
  std::array<std::vector<Local>, 2> locals_;
  std::deque<MatchedConnection> matched_;
  std::vector<Entry> entries_;
  std::int32_t free_ = -1;
  std::size_t waiting_ = 0;
  std::vector<Slot> slots_;  // those not found, by key
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
