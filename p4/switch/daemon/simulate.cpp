// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/simulate.hpp"

#include <istream>
#include <ostream>
#include <string>

#include "control/control_socket.hpp"
#include "io/frame_pool.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/load.hpp"
#include "switch/daemon/logs.hpp"
#include "switch/daemon/operation_values.hpp"
#include "switch/daemon/port_account.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

namespace {

using nlohmann::json;

constexpr std::uint64_t max_us = 1ULL << 40;  // about two weeks

class Simulation {
 public:
  explicit Simulation(const SwitchConfig& config)
      : config_(config),
        pool_(slot_bytes),
        program_(load_program_file(config.pipeline)),
        logs_(config_, 0, io::WhenBehind::wait),
        switch_(config, std::move(program_), pool_,
                logs_.wants_drops() ? [this](const Drop& drop) { logs_.add(drop); }
                                    : std::function<void(const Drop&)>()),
        controller_(switch_, {[] {}, [](std::size_t) {},
                              [this] {
                                logs_.take_digests(switch_);
                                return logs_.digests_for_controller();
                              },
                              [this] { return account(); }}) {
    if (!config.entries.empty()) controller_.load(config.entries);
    if (logs_.wants_samples()) {
      switch_.sample_every(config.queue_interval, [this](Instant) { logs_.sample(switch_); });
    }
  }

  json answer(const json& request) {
    ObjectReader reader(request, json::json_pointer());
    const std::string op = reader.text("op");
    if (op == "packet") return packet(reader);
    if (op != "advance") return controller_.answer(request);
    reader.only({"op", "us"});
    switch_.advance(switch_.now() + std::chrono::microseconds(reader.whole("us", 0, max_us)));
    return sent();
  }
  [[nodiscard]] bool stopped() const { return controller_.stopped(); }

  void finish() {
    logs_.take_digests(switch_);
    if (logs_.wants_samples()) logs_.sample(switch_);
    for (const std::string& trouble : logs_.close()) throw InputError(trouble);
  }

 private:
  json packet(ObjectReader& reader) {
    reader.only({"op", "port", "bytes"});
    const auto port = switch_.port_index(static_cast<Port>(reader.whole("port", 0, max_ports - 1)));
    if (!port || *port >= switch_.ports()) {
      throw ConfigError(reader.at("port"), "there is no such port",
                        "give one of the configuration");
    }
    const auto bytes = read_packet(reader);
    if (bytes.empty() || bytes.size() > slot_bytes - headroom) {
      throw ConfigError(reader.at("bytes"), "a frame of " + std::to_string(bytes.size()) + " bytes",
                        "give 1 to " + std::to_string(slot_bytes - headroom));
    }
    switch_.arrive(*port, bytes);
    return sent();
  }

  json sent() {
    json all = json::array();
    for (const Departure& departure : switch_.departures()) {
      const std::uint8_t* bytes = pool_.data(departure.frame.slot) + departure.frame.offset;
      all.push_back({{"port", config_.ports[departure.port].number},
                     {"bytes", to_hexadecimal({bytes, bytes + departure.frame.length})},
                     {"at_us", departure.at.time_since_epoch().count() / 1000}});
      pool_.give_back(departure.frame.slot);
    }
    switch_.departures().clear();
    return {{"ok", true}, {"sent", std::move(all)}};
  }

  [[nodiscard]] json account() {
    return {{"now_us", switch_.now_us()}, {"seed", config_.seed}, {"p4", program_account(switch_)}};
  }

  const SwitchConfig& config_;
  io::FramePool pool_;
  Program program_;
  Logs logs_;
  Switch switch_;
  Controller controller_;
};

}  // namespace

void simulate(const SwitchConfig& config, std::istream& requests, std::ostream& answers) {
  Simulation simulation(config);
  std::string line;
  while (!simulation.stopped() && std::getline(requests, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    answers << runtime::answer(line, [&](const json& request) {
      return simulation.answer(request);
    }) << std::endl;
  }
  simulation.finish();
}

}  // namespace nagi::p4
