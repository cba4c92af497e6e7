// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/replay.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "io/frame_pool.hpp"
#include "io/input_error.hpp"
#include "io/pcapng_file.hpp"
#include "native/capture_file.hpp"
#include "runtime/version.hpp"
#include "service/account.hpp"
#include "service/service.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/load.hpp"
#include "switch/daemon/logs.hpp"
#include "switch/daemon/port_account.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

namespace {

using captures::CaptureError;
using captures::CaptureFile;
using nlohmann::json;

constexpr std::uint32_t ethernet = 1;  // LINKTYPE_ETHERNET

/// The packets of one capture. Throws InputError if the capture is damaged, or if a packet is cut,
/// too long or no Ethernet frame.
class Source {
 public:
  explicit Source(const std::string& path) : path_(path), file_(open(path)) { advance(); }

  /// Return the next packet, or null at the end.
  [[nodiscard]] const captures::Record* next() const { return more_ ? &record_ : nullptr; }
  void advance() {
    more_ = file_->next(record_);
    if (!more_ && !file_->damage().empty()) {
      throw InputError(path_ + ": " + file_->damage() + "; give a complete capture");
    }
    if (more_) check();
  }

 private:
  static std::unique_ptr<CaptureFile> open(const std::string& path) {
    try {
      return std::make_unique<CaptureFile>(path);
    } catch (const CaptureError& error) {
      throw InputError(path + ": " + error.what() + "; " + error.cure());
    }
  }
  void check() const {
    const std::string location = path_ + ": packet " + std::to_string(file_->records()) + " ";
    if (record_.link_type != ethernet) {
      throw InputError(location + "is no Ethernet frame (link type " +
                       std::to_string(record_.link_type) + "); capture on an Ethernet interface");
    }
    if (record_.captured != record_.length) {
      throw InputError(location + "is cut to " + std::to_string(record_.captured) + " of " +
                       std::to_string(record_.length) +
                       " bytes; capture whole packets (tcpdump -s 0)");
    }
    if (record_.captured > slot_bytes - headroom) {
      throw InputError(location + "has " + std::to_string(record_.captured) +
                       " bytes; no frame has more than " + std::to_string(slot_bytes - headroom));
    }
  }

  std::string path_;
  std::unique_ptr<CaptureFile> file_;
  captures::Record record_;
  bool more_ = false;
};

struct ReplayPort {
  std::unique_ptr<Source> in;
  std::unique_ptr<io::PcapngFile> out;
  PortAccount account;
};

/// Return the port with the earliest next packet, or null if there are no more.
ReplayPort* earliest(std::vector<ReplayPort>& ports) {
  ReplayPort* earliest_port = nullptr;
  for (ReplayPort& port : ports) {
    if (!port.in || port.in->next() == nullptr) continue;
    if (earliest_port == nullptr || port.in->next()->time_ns < earliest_port->in->next()->time_ns)
      earliest_port = &port;
  }
  return earliest_port;
}

class Replay {
 public:
  explicit Replay(const SwitchConfig& config)
      : config_(config),
        program_(load_program_file(config.pipeline)),
        pool_(slot_bytes),
        ports_(open(config)),
        epoch_ns_(epoch(config)),
        logs_(config_, epoch_ns_, io::WhenBehind::wait),
        switch_(config, std::move(program_), pool_,
                logs_.wants_drops() ? [this](const Drop& drop) { logs_.add(drop); }
                                    : std::function<void(const Drop&)>()) {
    if (!config.entries.empty()) {
      Controller(switch_, {[] {}, [](std::size_t) {}, {}, {}}).load(config.entries);
    }
    if (logs_.wants_samples()) {
      switch_.sample_every(config.queue_interval, [this](Instant) { logs_.sample(switch_); });
    }
  }

  void run() {
    while (ReplayPort* port = earliest(ports_)) take_in(*port);
    while (const auto next = switch_.next_departure()) {
      switch_.advance(*next);
      hand_over();
    }
    if (logs_.wants_samples()) logs_.sample(switch_);
    finish();
  }

 private:
  static std::vector<ReplayPort> open(const SwitchConfig& config) {
    std::vector<ReplayPort> ports(config.ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const PortConfig& port = config.ports[i];
      if (!port.in.empty()) ports[i].in = std::make_unique<Source>(port.in);
    }
    // Create the outputs only now, after all inputs were opened.
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const PortConfig& port = config.ports[i];
      if (port.out.empty()) continue;
      ports[i].out = runtime::make_file<io::PcapngFile>(
          port.out, "nagi-switch", std::vector{std::to_string(port.number)}, io::PcapngFile::whole,
          io::WhenBehind::wait);
    }
    return ports;
  }

  std::int64_t epoch(const SwitchConfig& config) {
    ReplayPort* first = earliest(ports_);
    const std::int64_t begins = first != nullptr ? first->in->next()->time_ns : 0;
    if (config.epoch_realtime_ns == 0) return begins;
    if (config.epoch_realtime_ns > begins) {
      throw InputError(
          "epoch_realtime_ns: this time is after the first packet; give an earlier time, or leave "
          "epoch_realtime_ns out");
    }
    return config.epoch_realtime_ns;
  }

  void take_in(ReplayPort& port) {
    const captures::Record& record = *port.in->next();
    const Instant stamped{Duration{record.time_ns - epoch_ns_}};
    // A capture may have packets with earlier timestamps than their predecessors.
    const Instant at = std::max(stamped, switch_.now());
    port.account.came(at - stamped);
    const io::Frame frame{pool_.take(), headroom, record.captured};
    std::memcpy(pool_.data(frame.slot) + frame.offset, record.data, record.captured);
    switch_.arrive(static_cast<std::size_t>(&port - ports_.data()), frame, at);
    port.in->advance();
    hand_over();
  }

  void hand_over() {
    logs_.take_digests(switch_);
    for (const Departure& departure : switch_.departures()) {
      ReplayPort& port = ports_[departure.port];
      const io::Frame& frame = departure.frame;
      if (port.out) {
        port.out->add(0, departure.at.time_since_epoch().count() + epoch_ns_,
                      pool_.data(frame.slot) + frame.offset, frame.length);
      }
      port.account.handed_over(departure, departure.at);
      pool_.give_back(frame.slot);
    }
    switch_.departures().clear();
  }

  void finish() {
    std::vector<std::string> troubles = logs_.close();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (!ports_[i].out) continue;
      const std::string trouble = runtime::close_file(config_.ports[i].out, ports_[i].out->file());
      if (!trouble.empty()) troubles.push_back(trouble);
    }
    if (!troubles.empty()) throw InputError(troubles.front());
    if (!config_.account.empty()) runtime::write_account(config_.account, account());
  }

  /// Return the account, without values that differ between executions (processor time, clock).
  [[nodiscard]] json account() const {
    json ports = json::array();
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      json port = ports_[i].account.to_json(switch_, i);
      port["number"] = config_.ports[i].number;
      ports.push_back(std::move(port));
    }
    return {{"schema_version", 1},
            {"executable", "nagi-switch"},
            {"version", runtime::program_version},
            {"replay", true},
            {"complete", true},
            {"seed", config_.seed},
            {"epoch_realtime_ns", epoch_ns_},
            {"p4", program_account(switch_)},
            {"ports", std::move(ports)}};
  }

  const SwitchConfig& config_;
  Program program_;
  io::FramePool pool_;
  std::vector<ReplayPort> ports_;
  std::int64_t epoch_ns_;
  Logs logs_;
  Switch switch_;
};

}  // namespace

void replay(const SwitchConfig& config) { Replay(config).run(); }

}  // namespace nagi::p4
