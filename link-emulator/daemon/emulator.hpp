// SPDX-License-Identifier: Apache-2.0
//
// The link model in real time, between network interfaces. Frames that arrive enter the model at
// the instant the kernel saw them; what the model delivers is sent as soon as it is due.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/carrier.hpp"
#include "daemon/config.hpp"
#include "daemon/packet_record.hpp"
#include "daemon/transmission_record.hpp"
#include "io/background_file.hpp"
#include "io/frame_pool.hpp"
#include "io/pcapng_file.hpp"
#include "io/port.hpp"
#include "io/timed_sender.hpp"
#include "model/json.hpp"
#include "model/link.hpp"
#include "service/account.hpp"
#include "service/clock.hpp"
#include "service/histogram.hpp"
#include "service/ports.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

class Emulator final : public runtime::Service {
 public:
  /// Opens all interfaces and files of `config`, but for account and control socket. Offloads that
  /// spoil emulation are switched off (and on again at the end) or refused. Throws InputError, or
  /// std::system_error if the kernel refuses.
  explicit Emulator(const Config& config);

  [[nodiscard]] std::vector<int> descriptors() const override;
  [[nodiscard]] bool is_free_to_ask() const override { return ports_.is_free_to_ask(); }
  runtime::Served serve(const std::vector<int>& readable) override;
  [[nodiscard]] model::Duration patience() const override;
  runtime::Served serve_ahead() override;
  void hold_time() override { time_.hold(); }

  /// {"command": "show"}, {"command": "stop"}, and {"command": "set"} with what change() takes.
  nlohmann::json answer(const nlohmann::json& request) override;
  [[nodiscard]] bool stopped() const override { return stopped_; }

  void set_privileges(const runtime::Privileges& privileges) override { privileges_ = privileges; }
  void finish() override;
  /// As links.json has it.
  [[nodiscard]] nlohmann::json account(bool complete) override;

 private:
  /// {"link": name, "way": "a_to_b" or "b_to_a", "config": {...}}: changes a direction from now on.
  /// Keys of its configuration that are given replace those it has; null takes one away. No packet
  /// is lost by it. Returns the direction's new configuration. Throws model::ConfigError.
  nlohmann::json change(model::ObjectReader request);

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

  /// A packet that a radio carries.
  struct Carried {
    model::Sending sending;
    std::optional<Outcome> outcome;
    std::int16_t snr = no_snr;
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
    runtime::Histogram transit_error;  // ns between being due and being handed over
    runtime::Histogram
        arrival_lateness;  // ns by which the model had moved past an arrival; 0 for most
    std::uint64_t late_events = 0;
    std::vector<model::Departure> due;
    std::unique_ptr<io::TimedSender> ahead;  // with `virtual_time`
    std::uint64_t sent_ahead = 0;
    std::uint64_t not_sent_ahead = 0;
    std::unique_ptr<Carrier> carrier;  // of a radio
    std::deque<Carried> carried;       // by it, until the model has drawn the conclusion
    std::deque<io::Arrival> kept_out;  // the model stands still for want of an outcome
    std::array<std::uint64_t, outcomes> ended_by{};  // transmissions
    std::uint64_t undetected_errors = 0;             // the radio took something else for the packet
  };

  struct Link {
    std::string name;
    std::uint32_t id;
    io::Port* a;
    io::Port* b;
    std::unique_ptr<Lane> a_to_b;
    std::unique_ptr<Lane> b_to_a;
  };

  void open_files();
  /// Returns the instant up to which everything that arrived on this lane is known.
  model::Instant take_in(Lane& lane, model::Instant now);
  /// False: the model cannot take it yet.
  bool take_in(Lane& lane, const io::Arrival& arrival);
  void listen(Lane& lane);
  void receive(Lane& lane, Carried& carried, const Carrier::Answer& answer);
  void carry(Lane& lane);
  void conclude(Lane& lane);
  void record(const Lane& lane, const model::Sending& sending, Outcome outcome, std::int16_t snr);
  [[nodiscard]] std::span<std::byte> packet_of(const model::Packet& packet) const;
  void bring_on(Lane& lane, model::Instant known);
  void settle(Lane& lane);
  void drop(const Lane& lane, const model::Departure& departure);
  /// What is noted of a frame that leaves; it is marked, if its packet is.
  const Held& leaving(const model::Departure& departure);
  void send(Lane& lane);
  void send_ahead(Lane& lane, model::Instant now);
  void record(const Lane& lane, const Held& held, const model::Packet& packet, std::int64_t left_ns,
              std::uint8_t fate, std::int64_t late_ns);
  Lane& lane_of(const model::ObjectReader& request);
  [[nodiscard]] static nlohmann::json account_of(const Lane& lane);
  [[nodiscard]] static nlohmann::json transmissions_of(const Lane& lane);
  [[nodiscard]] nlohmann::json account_of(io::Port& port) const;

  Config config_;
  runtime::RealTime time_;
  std::int64_t started_realtime_ns_;
  runtime::Notices notices_;
  runtime::Ports ports_;
  io::FramePool& pool_;
  std::vector<Link> links_;
  std::vector<Lane*> lanes_;
  runtime::Privileges privileges_;
  std::unique_ptr<io::BackgroundFile> packets_;
  std::unique_ptr<io::BackgroundFile> transmissions_;
  std::unique_ptr<io::PcapngFile> drops_;
  bool stopped_ = false;
  std::vector<io::Arrival> arrivals_;
  std::vector<model::Departure> departures_;
  std::vector<io::Frame> frames_;
  std::vector<io::Timed> timed_;
  std::vector<Held> leaving_;  // their slots are no longer ours when they are recorded
};

}  // namespace nagi::daemon
