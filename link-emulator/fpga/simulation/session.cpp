// SPDX-License-Identifier: Apache-2.0
#include "simulation/session.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "include/nagi_registers.h"
#include "io/input_error.hpp"
#include "simulation/configuration.hpp"
#include "simulation/requests.hpp"

namespace nagi::fpga {

using daemon::fpga::Kind;
using daemon::fpga::MessageWriter;
using nlohmann::json;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void Session::serve() {
  try {
    Kind kind{};
    while (const auto request = socket_.receive(kind, false)) {
      if (kind == Kind::configure) {
        configure(*request);
      } else if (kind == Kind::advance && is_configured_) {
        advance(*request);
      } else if (kind == Kind::count && is_configured_) {
        count();
      } else {
        throw InputError("unknown request, or a request before the configuration");
      }
    }
  } catch (const std::exception& error) {
    const std::string what = error.what();
    try {
      socket_.send(MessageWriter(Kind::refused).bytes(bytes_of(what)));
    } catch (const std::system_error&) {
      // nagi-link has already closed the socket and needs no error.
    }
    throw;
  }
}

void Session::configure(std::span<const std::byte> request) {
  fpga::configure(core_, read_configuration(request));
  is_configured_ = true;
  const json answer = {{"build_id", core_.read_register(NAGI_FPGA_BUILD_ID)}, {"tick_ns", tick_ns}};
  const std::string text = answer.dump();
  socket_.send(MessageWriter(Kind::configure).bytes(bytes_of(text)));
}

void Session::bring_to(std::int64_t to_ns) {
  while (const auto next = core_.next_tick()) {
    if (*next > to_ns) return;
    core_.set_time(std::max(*next, now_ns_));
    now_ns_ = std::max(*next, now_ns_);
  }
}

void Session::advance(std::span<const std::byte> request) {
  const Advance target = read_advance(request, now_ns_);
  for (const FrameArrival& arrival : target.arrivals) {
    bring_to(arrival.at_ns);
    if (arrival.at_ns > now_ns_) {
      core_.set_time(arrival.at_ns);
      now_ns_ = arrival.at_ns;
    }
    core_.offer(arrival.direction, arrival.frame);
  }
  bring_to(target.to_ns);

  const std::vector<Departure> departures = core_.take_departures();
  daemon::fpga::AdvancedHead head;
  head.next_ns = core_.next_tick().value_or(daemon::fpga::never);
  head.departures = static_cast<std::uint32_t>(departures.size());
  MessageWriter answer(Kind::advance);
  answer.part(head);
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
