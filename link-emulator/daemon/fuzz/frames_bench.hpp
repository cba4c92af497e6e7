// SPDX-License-Identifier: Apache-2.0
//
// The environment of parts of nagi-link in fuzz targets, without network interfaces: ports receive
// the frames that put() adds.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/link_direction.hpp"
#include "daemon/recorder.hpp"
#include "io/port.hpp"
#include "model/direction_json.hpp"
#include "service/ports.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

class FuzzPort final : public io::Port {
 public:
  explicit FuzzPort(io::FramePool& pool) : pool_(pool) {}

  void put(std::span<const std::uint8_t> bytes, std::int64_t monotonic_ns) {
    const std::size_t length = std::min(bytes.size(), pool_.slot_bytes());
    const io::Slot slot = pool_.take();
    if (length > 0) std::memcpy(pool_.data(slot), bytes.data(), length);
    waiting_.push_back({{slot, 0, static_cast<std::uint32_t>(length)}, monotonic_ns});
  }

  [[nodiscard]] const std::string& interface() const override { return name_; }
  [[nodiscard]] const std::string& kind() const override { return name_; }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] bool is_cheap_to_read() const override { return true; }
  bool receive(std::vector<io::Arrival>& arrivals) override {
    arrivals.insert(arrivals.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    return false;
  }
  void send(const std::vector<io::Frame>& frames) override {
    for (const io::Frame& frame : frames) pool_.give_back(frame.slot);
  }
  [[nodiscard]] io::PortCounters counters() override { return {}; }

 private:
  io::FramePool& pool_;
  std::string name_ = "fuzz";
  std::vector<io::Arrival> waiting_;
};

/// The clock, the memory for frames, and a recorder, which writes to /dev/null.
struct FramesBench {
  FramesBench() {
    config.packets = config.transmissions = config.drops = "/dev/null";
    config.links.push_back({.name = "link"});
    recorder.emplace(config);
  }

  [[nodiscard]] Shared shared() { return {time, ports, *recorder}; }

  Config config;
  runtime::Notices notices;
  runtime::RealTime time{0};
  runtime::Ports ports{config, {"lo"}, {}, notices};
  std::optional<Recorder> recorder;
};

inline model::DirectionConfig direction_config(const char* text) {
  const auto value = nlohmann::json::parse(text);
  return model::read_direction(ObjectReader(value, nlohmann::json::json_pointer()));
}

/// Take the frames that are due, and return their slots to the pool.
inline void take_due(LinkDirection& direction, io::FramePool& pool) {
  direction.process_departures();
  for (const model::Departure& departure : direction.due()) {
    const HeldFrame& held = direction.prepare_frame(departure);
    direction.note_handed_over(held, departure, 0);
    pool.give_back(held.frame.slot);
  }
  direction.due().clear();
}

}  // namespace nagi::daemon
