// SPDX-License-Identifier: Apache-2.0
#include "daemon/emulator.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>

#include "io/clock.hpp"

namespace nagi::daemon {

namespace {

using io::read_clock;
using nlohmann::json;

std::vector<std::string> list_interfaces(const Config& config) {
  std::vector<std::string> all;
  for (const LinkConfig& link : config.links) all.insert(all.end(), {link.a, link.b});
  for (const MediumSettings& medium : config.media) {
    for (const StationSettings& station : medium.stations) all.push_back(station.interface);
  }
  return all;
}

/// Estimate the rates and the number of frames in flight from the configuration.
runtime::Expected estimate_traffic(const Config& config) {
  double frames = 0;
  runtime::Expected expected;
  for (const LinkConfig& link : config.links) {
    for (const model::DirectionConfig* direction : {&link.forward, &link.backward}) {
      const auto rate = model::mean_rate(direction->rate);
      expected.rates.push_back(rate);
      const auto* delay = std::get_if<Duration>(&direction->delay);
      if (!rate || delay == nullptr) continue;
      frames += static_cast<double>(rate->bits_per_second) /
                static_cast<double>(runtime::usual_frame_bits) *
                std::chrono::duration<double>(*delay).count();
      const auto* packets = std::get_if<Packets>(&model::limit_of(direction->queue));
      if (packets != nullptr) frames += static_cast<double>(packets->count);
    }
  }
  for (const MediumSettings& medium : config.media) {
    const auto* packets = std::get_if<Packets>(&model::limit_of(medium.config.queue));
    // Frames on the air are copied for each receiver.
    const double per_station = packets != nullptr ? static_cast<double>(packets->count) + 2 : 2;
    frames += per_station * static_cast<double>(medium.stations.size());
    expected.rates.insert(expected.rates.end(), medium.stations.size(),
                          medium.config.phy.data_rate);
  }
  constexpr double maximum = 1e9;
  expected.frames_in_flight = static_cast<std::size_t>(std::min(frames, maximum));
  return expected;
}

}  // namespace

Emulator::Emulator(const Config& config)
    : config_(config),
      time_(config.epoch_realtime_ns),
      started_realtime_ns_(read_clock(CLOCK_REALTIME)),
      ports_(config, list_interfaces(config), estimate_traffic(config), notices_),
      recorder_(config),
      controller_(links_, [this] { return account(false); }) {
  for (const LinkConfig& link : config.links) open_link(link);
  for (const MediumSettings& medium : config.media) open_medium(medium);
  real_time_.emplace(directions(), media(), time_, ports_.pool());
  // On a medium, the outcome of a frame is known only at its end, so no frame can be sent ahead of
  // time.
  if (config.virtual_time && media_.empty())
    virtual_time_.emplace(directions(), time_, ports_.pool());
}

void Emulator::open_link(const LinkConfig& link) {
  io::Port& a = ports_.open(link.a);
  io::Port& b = ports_.open(link.b);
  links_.push_back({link.name, link.id, &a, &b, nullptr, nullptr});
  if (link.core) cores_.push_back(make_core(link));
  links_.back().forward = make_direction(link, model::DirectionName::forward, a, b);
  links_.back().backward = make_direction(link, model::DirectionName::backward, b, a);
}

void Emulator::open_medium(const MediumSettings& medium) {
  std::vector<io::Port*> ports;
  for (const StationSettings& station : medium.stations) {
    ports.push_back(&ports_.open(station.interface));
  }
  std::size_t number = 2 * links_.size();
  for (const auto& other : media_) number += other->ports().size();
  media_.push_back(std::make_unique<SharedMedium>(static_cast<std::uint8_t>(number), medium,
                                                  config_.seed, std::move(ports),
                                                  Shared{time_, ports_, recorder_}));
}

std::unique_ptr<LinkDirection> Emulator::make_direction(const LinkConfig& link,
                                                        model::DirectionName name, io::Port& in,
                                                        io::Port& out) {
  const bool back = name == model::DirectionName::backward;
  const std::size_t number = 2 * (links_.size() - 1) + (back ? 1 : 0);
  const model::DirectionConfig& config = back ? link.backward : link.forward;
  const Shared shared{time_, ports_, recorder_};
  if (link.core) {
    auto core = std::make_unique<FpgaDirection>(cores_.back(), name);
    return std::make_unique<LinkDirection>(static_cast<std::uint8_t>(number), config,
                                           std::move(core), in, out, shared);
  }
  auto direction = std::make_unique<model::Direction>(config, config_.seed, link.id, name);
  std::unique_ptr<RadioSocket> socket;
  if (direction->is_radio()) {
    socket = std::make_unique<RadioSocket>(
        (back ? link.socket_backward : link.socket_forward).value_or(-1),
        "link " + link.name + (back ? ", backward" : ", forward"));
  }
  return std::make_unique<LinkDirection>(static_cast<std::uint8_t>(number), config,
                                         std::move(direction), std::move(socket), in, out, shared);
}

std::shared_ptr<FpgaCore> Emulator::make_core(const LinkConfig& link) {
  const FpgaSettings settings{
      config_.seed, link.id, {link.forward, link.backward}, config_.virtual_time};
  return std::make_shared<FpgaCore>(*link.core, "link " + link.name, settings, ports_.pool());
}

std::vector<LinkDirection*> Emulator::directions() const {
  std::vector<LinkDirection*> all;
  for (const Link& link : links_) all.insert(all.end(), {link.forward.get(), link.backward.get()});
  return all;
}

std::vector<SharedMedium*> Emulator::media() const {
  std::vector<SharedMedium*> all;
  for (const auto& medium : media_) all.push_back(medium.get());
  return all;
}

std::vector<int> Emulator::descriptors() const {
  std::vector<int> all = ports_.descriptors();
  for (const LinkDirection* direction : directions()) {
    if (direction->socket() != nullptr) all.push_back(direction->socket()->descriptor());
  }
  for (const auto& core : cores_) all.push_back(core->descriptor());
  return all;
}

runtime::Served Emulator::serve(const std::vector<int>& readable) {
  for (const auto& core : cores_) {
    if (std::ranges::find(readable, core->descriptor()) != readable.end()) core->report_end();
  }
  return real_time_->serve(readable);
}

Duration Emulator::lookahead() const {
  if (!virtual_time_ || !is_cheap_to_read()) return {};  // only poll() finds the ports with frames
  return virtual_time_->lookahead();
}

void Emulator::finish() {
  ports_.note_oversized();
  for (const auto& core : cores_) core->catch_up();
  for (LinkDirection* direction : directions()) direction->finish();
  for (SharedMedium* medium : media()) medium->finish(notices_);
  recorder_.close(notices_);
}

json Emulator::account_of(io::Port& port) const {
  io::PortCounters count = port.counters();
  if (virtual_time_) virtual_time_->add_sent(port, count);
  return ports_.account_of(port, count);
}

json Emulator::account(bool complete) {
  json links = json::array();
  for (const Link& link : links_) {
    links.push_back({{"name", link.name},
                     {"id", link.id},
                     {"a", account_of(*link.a)},
                     {"b", account_of(*link.b)},
                     {"forward", link.forward->account()},
                     {"backward", link.backward->account()}});
  }
  json media = json::array();
  std::uint64_t records_lost = recorder_.lost();
  for (const auto& medium : media_) {
    media.push_back(medium->account([this](io::Port& port) { return account_of(port); }));
    records_lost += medium->records_lost();
  }
  json account = runtime::account_head("nagi-link", config_, privileges_, complete);
  account.update({{"epoch_realtime_ns", time_.epoch_realtime_ns()},
                  {"started_realtime_ns", started_realtime_ns_},
                  {"ended_realtime_ns", read_clock(CLOCK_REALTIME)},
                  {"records_lost", records_lost},
                  {"notices", notices_.all()},
                  {"links", links}});
  if (!media.empty()) account["media"] = std::move(media);
  return account;
}

}  // namespace nagi::daemon
