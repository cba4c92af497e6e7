// SPDX-License-Identifier: Apache-2.0
#include "simulation/session.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "include/nagi_registers.h"
#include "io/input_error.hpp"
#include "model/direction_json.hpp"
#include "runtime/version.hpp"
#include "simulation/configuration.hpp"

namespace nagi::fpga {

using daemon::fpga::Kind;
using daemon::fpga::MessageReader;
using daemon::fpga::MessageWriter;
using nlohmann::json;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void require_same_version(const json& wanted) {
  const std::string version = wanted.value("version", "none");
  if (version != runtime::program_version ||
      wanted.value("protocol", 0) != daemon::fpga::protocol_version) {
    throw InputError("nagi-link is of version " + version + ", nagi-fpga of " +
                     runtime::program_version + "; build both again: `make fpga-simulation`");
  }
}

LinkConfiguration read(const json& wanted) {
  using model::ObjectReader;
  LinkConfiguration configuration;
  try {
    const ObjectReader reader(wanted, json::json_pointer());
    configuration.link = static_cast<std::uint32_t>(
        reader.whole("link", 0, std::numeric_limits<std::uint32_t>::max()));
    configuration.seed = wanted.at("seed").get<std::uint64_t>();
    configuration.directions = {model::read_direction(reader.object("forward")),
                                model::read_direction(reader.object("backward"))};
  } catch (const model::ConfigError& error) {
    throw InputError(error.where().to_string() + ": " + error.what() + "; " + error.cure());
  }
  return configuration;
}

}  // namespace

void Session::serve() {
  try {
    Kind kind{};
    while (const auto request = socket_.receive(kind, false)) {
      if (kind == Kind::configure) {
        configure(*request);
      } else if (kind == Kind::advance && is_configured_) {
        advance(MessageReader(*request));
      } else if (kind == Kind::count && is_configured_) {
        count();
      } else {
        throw InputError("no request of nagi-link");
      }
    }
  } catch (const std::exception& error) {
    const std::string what = error.what();
    try {
      socket_.send(MessageWriter(Kind::refused).bytes(bytes_of(what)));
    } catch (const std::system_error&) {
      // It is gone, and need not be told.
    }
    throw;
  }
}

void Session::configure(std::span<const std::byte> request) {
  const auto* text = reinterpret_cast<const char*>(request.data());
  const json wanted = json::parse(text, text + request.size(), nullptr, false);
  if (!wanted.is_object()) throw InputError("no configuration of a link");
  require_same_version(wanted);
  fpga::configure(core_, read(wanted));
  is_configured_ = true;
  const json answer = {{"build_id", core_.read_register(NAGI_FPGA_BUILD_ID)}, {"tick_ns", tick_ns}};
  const std::string written = answer.dump();
  socket_.send(MessageWriter(Kind::configure).bytes(bytes_of(written)));
}

void Session::bring_to(std::int64_t to_ns) {
  while (const auto next = core_.next_tick()) {
    if (*next > to_ns) return;
    core_.set_time(std::max(*next, now_ns_));
    now_ns_ = std::max(*next, now_ns_);
  }
}

void Session::advance(MessageReader request) {
  const auto head = request.part<daemon::fpga::AdvanceHead>();
  for (std::uint32_t i = 0; i < head.arrivals; ++i) {
    const auto arrival = request.part<daemon::fpga::ArrivalHead>();
    const std::span<const std::byte> frame = request.bytes(arrival.length);
    if (arrival.at_ns < now_ns_ || arrival.at_ns > head.to_ns || arrival.at_ns % tick_ns != 0) {
      throw InputError("an arrival that is not at a tick, or out of order");
    }
    bring_to(arrival.at_ns);
    if (arrival.at_ns > now_ns_) {
      core_.set_time(arrival.at_ns);
      now_ns_ = arrival.at_ns;
    }
    core_.offer(arrival.direction, frame);
  }
  request.require_end();
  bring_to(head.to_ns);

  const std::vector<Departure> departures = core_.take_departures();
  daemon::fpga::AdvancedHead answered;
  answered.next_ns = core_.next_tick().value_or(daemon::fpga::never);
  answered.departures = static_cast<std::uint32_t>(departures.size());
  MessageWriter answer(Kind::advance);
  answer.part(answered);
  for (const Departure& departure : departures) {
    answer.part(
        daemon::fpga::DepartureHead{.arrived_ns = departure.arrived_ns,
                                    .left_ns = departure.left_ns,
                                    .index = departure.index,
                                    .identity = departure.identity,
                                    .late_ns = departure.late_ns,
                                    .ip_bytes = departure.ip_bytes,
                                    .length = static_cast<std::uint16_t>(departure.frame.size()),
                                    .direction = departure.direction,
                                    .fate = departure.fate,
                                    .ecn = departure.ecn,
                                    .marked = static_cast<std::uint8_t>(departure.marked ? 1 : 0)});
    answer.bytes(departure.frame);
  }
  socket_.send(answer);
}

void Session::count() {
  latch(core_);
  MessageWriter answer(Kind::count);
  for (std::size_t direction = 0; direction < 2; ++direction) {
    answer.part(fpga::count(core_, direction));
  }
  socket_.send(answer);
}

}  // namespace nagi::fpga
