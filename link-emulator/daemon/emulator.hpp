// SPDX-License-Identifier: Apache-2.0
//
// The link model in real time, between network interfaces. Frames that arrive enter the model at
// the instant the kernel saw them; what the model delivers is sent as soon as it is due.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/clock.hpp"
#include "daemon/config.hpp"
#include "daemon/drop_log.hpp"
#include "daemon/histogram.hpp"
#include "daemon/packet_record.hpp"
#include "daemon/privileges.hpp"
#include "io/background_file.hpp"
#include "io/frame_pool.hpp"
#include "io/open.hpp"
#include "io/port.hpp"
#include "io/timed_sender.hpp"
#include "model/json.hpp"
#include "model/link.hpp"

namespace nagi::daemon {

class Emulator {
 public:
  /// Opens all interfaces and files of `config`, but for account and control socket. Offloads that
  /// spoil emulation are switched off (and on again at the end) or refused. Throws InputError, or
  /// std::system_error if the kernel refuses.
  explicit Emulator(const Config& config);
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
  ~Emulator();

  /// Descriptors that become readable when frames wait.
  [[nodiscard]] std::vector<int> descriptors() const;
  /// Whether all ports can be asked for frames at next to no cost, without their descriptors.
  [[nodiscard]] bool is_free_to_ask() const;
  struct Served {
    /// When something is next due (CLOCK_MONOTONIC, ns), or nothing if all is quiet. Due in the
    /// past: serve again at once.
    std::optional<std::int64_t> next_delivery_ns;
    std::int64_t now_ns = 0;  // by the same clock: when it began to serve
    bool idle = true;         // serve(): there was nothing to take in and nothing to send
    bool quiet = true;        // the links hold nothing
  };
  /// For how long frames need not be looked at, as none of them is due sooner after it came.
  [[nodiscard]] model::Duration patience() const;
  /// Takes in all that has come, and hands what is under way to the kernel, which sends each frame
  /// at its own instant. To be called again within patience(). Only with `virtual_time`: when
  /// frames were sent is then only seen where they arrive.
  Served serve_ahead();
  /// From now on this is the time, until this is called again (see RealTime::hold).
  void hold_time() { time_.hold(); }
  /// Takes in what waits at the descriptors in `readable` and sends what is due.
  Served serve(const std::vector<int>& readable);

  /// {"link": name, "way": "a_to_b" or "b_to_a", "config": {...}}: changes a direction from now on.
  /// Keys of its configuration that are given replace those it has; null takes one away. No packet
  /// is lost by it. Returns the direction's new configuration. Throws model::ConfigError.
  nlohmann::json change(model::ObjectReader request);

  /// Notes, for the account, how this process is run.
  void set_privileges(const Privileges& privileges) { privileges_ = privileges; }
  /// Emulation is over: completes the files.
  void finish();
  /// What happened so far, as links.json has it.
  [[nodiscard]] nlohmann::json account(bool complete);

 private:
  /// A frame that the model holds; the model knows it by its slot, where this is noted.
  struct Held {
    model::Instant arrived;
    io::Frame frame;
    std::uint32_t index = 0;
    std::uint32_t identity = 0;
  };

  struct Change {
    model::Instant at;
    nlohmann::json config;
  };

  /// One direction of a link: frames in from one port, out at the other.
  struct Lane {
    Lane(std::uint8_t its_number, const model::DirectionConfig& configuration, std::uint64_t seed,
         std::uint32_t link, model::Way way, io::Port& input, io::Port& output)
        : number(its_number),
          config(configuration),
          model(configuration, seed, link, way),
          in(input),
          out(output) {}

    std::uint8_t number;
    model::DirectionConfig config;
    std::vector<Change> changes;
    model::Direction model;
    io::Port& in;
    io::Port& out;
    std::uint64_t arrived = 0;
    Histogram transit_error;     // ns between being due and being handed over
    Histogram arrival_lateness;  // ns by which the model had moved past an arrival; 0 for most
    std::uint64_t late_events = 0;
    std::vector<model::Departure> due;
    std::unique_ptr<io::TimedSender> ahead;  // with `virtual_time`
    std::uint64_t sent_ahead = 0;
    std::uint64_t not_sent_ahead = 0;
  };

  struct Link {
    std::string name;
    std::uint32_t id;
    io::Port* a;
    io::Port* b;
    std::unique_ptr<Lane> a_to_b;
    std::unique_ptr<Lane> b_to_a;
  };

  struct SwitchedOff {
    std::string interface;
    std::string offload;
  };

  void settle_offloads(const std::string& interface);
  io::Port& open(const std::string& interface);
  void open_files();
  /// Returns the instant up to which everything that arrived on this lane is known.
  model::Instant take_in(Lane& lane, model::Instant now);
  void take_in(Lane& lane, const io::Arrival& arrival);
  void bring_on(Lane& lane, model::Instant known);
  void settle(Lane& lane);
  void drop(const Lane& lane, const model::Departure& departure);
  /// What is noted of a frame that leaves; it is marked, if its packet is.
  const Held& leaving(const model::Departure& departure);
  void send(Lane& lane);
  void send_ahead(Lane& lane, model::Instant now);
  void record(const Lane& lane, const Held& held, const model::Packet& packet, std::int64_t left_ns,
              std::uint8_t fate, std::int64_t late_ns);
  Lane& lane_of(model::ObjectReader& request);
  void notice(const std::string& text);
  [[nodiscard]] static nlohmann::json account_of(const Lane& lane);
  [[nodiscard]] nlohmann::json account_of(io::Port& port) const;

  Config config_;
  RealTime time_;
  std::int64_t started_realtime_ns_;
  std::unique_ptr<io::FramePool> pool_;
  std::optional<io::PortOpener> opener_;
  std::vector<std::unique_ptr<io::Port>> ports_;
  std::vector<Link> links_;
  std::vector<Lane*> lanes_;
  std::vector<SwitchedOff> switched_off_;
  std::vector<std::string> notices_;
  Privileges privileges_;
  std::unique_ptr<io::BackgroundFile> packets_;
  std::unique_ptr<DropLog> drops_;
  std::vector<io::Arrival> arrivals_;
  std::vector<model::Departure> departures_;
  std::vector<io::Frame> frames_;
  std::vector<io::Timed> timed_;
  std::vector<Held> leaving_;  // their slots are no longer ours when they are recorded
};

}  // namespace nagi::daemon
