// SPDX-License-Identifier: Apache-2.0
#include "service/ports.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include "io/input_error.hpp"
#include "io/interface.hpp"
#include "io/ip_header.hpp"
#include "io/offloads.hpp"

namespace nagi::runtime {

namespace {

using nlohmann::json;

constexpr std::size_t slots_at_start = 4096;
constexpr std::size_t max_in_flight = 65536;  // 134 MB

/// Return the number of frames that a port holds while this process does not run. The port holds
/// the frames of 50 ms at the highest expected rate, because the kernel may give the processor to
/// other programs for up to that time. It holds at least a burst. Each frame takes 2 KB of pinned
/// memory, with or without traffic. More than eight ports therefore share a limit. A link takes 21
/// MB in a network of few ports, and 1.3 MB in a network of many ports. In virtual time, only
/// bursts wait.
std::uint32_t receive_ring(const Expected& expected, std::size_t ports, bool virtual_time) {
  constexpr std::uint64_t burst_of_few = 4096;  // 160 ms of 25,000 packets/s
  constexpr std::uint64_t burst_of_some = 1024;
  constexpr std::uint64_t burst_of_many = 256;
  constexpr std::uint64_t without_rate = 8192;
  constexpr std::uint64_t maximum = 32768;
  constexpr std::uint64_t all_ports = 1 << 17;  // frames of all ports: 268 MB
  const std::uint64_t bursts = ports <= 8    ? burst_of_few
                               : ports <= 16 ? burst_of_some
                                             : burst_of_many;
  std::uint64_t frames = bursts;
  for (const auto& rate : expected.rates) {
    frames = std::max(frames, rate ? rate->bits_per_second / 20 / usual_frame_bits : without_rate);
  }
  frames = std::bit_ceil(std::min(frames, maximum));
  if (ports > 8) {
    frames = virtual_time ? bursts
                          : std::min(frames, std::max(bursts, std::bit_floor(all_ports / ports)));
  }
  return static_cast<std::uint32_t>(frames);
}

/// Return the length of the longest frame of all interfaces, rounded up to cache lines.
std::size_t slot_bytes(const std::vector<std::string>& interfaces) {
  std::size_t longest = 0;
  for (const std::string& interface : interfaces) {
    longest = std::max(longest, io::longest_frame(interface));
  }
  return (longest + 63) / 64 * 64;
}

}  // namespace

Ports::Ports(const ServiceSettings& settings, const std::vector<std::string>& interfaces,
             const Expected& expected, Notices& notices)
    : offloads_(settings.offloads),
      notices_(notices),
      ring_(receive_ring(expected, interfaces.size(), settings.virtual_time)),
      pool_(slot_bytes(interfaces),
            io::registered_slots(interfaces.size(), ring_,
                                 std::min(expected.frames_in_flight, max_in_flight), settings.io)),
      opener_(pool_, settings.io, ring_) {
  pool_.reserve(slots_at_start);
}

Ports::~Ports() {
  for (const SwitchedOff& off : switched_off_) {
    try {
      io::set_offload(off.interface, off.offload, true);
    } catch (const std::system_error& error) {
      spdlog::warn("could not switch {} of {} on again: {}", off.offload, off.interface,
                   error.what());
    }
  }
}

void Ports::apply_offload_policy(const std::string& interface) {
  for (const std::string& offload : io::offloads_on(interface)) {
    if (offloads_ == OffloadPolicy::refuse) {
      throw InputError("interface " + interface + ": " + offload +
                       " is on, which would disturb the emulation; switch it off: ethtool -K " +
                       interface + " " + offload + " off");
    }
    io::set_offload(interface, offload, false);
    switched_off_.push_back({interface, offload});
    spdlog::info("switched {} of {} off; it is switched on again at the end", offload, interface);
  }
  for (const std::string& offload : io::offloads_on(interface)) {
    throw InputError("interface " + interface + ": " + offload +
                     " cannot be switched off; use another interface or driver");
  }
}

io::Port& Ports::open(const std::string& interface) {
  apply_offload_policy(interface);
  const auto opening = [&] {
    try {
      return opener_.open(interface);
    } catch (const std::system_error& error) {
      if (error.code().value() != EBUSY) throw;
      throw InputError("interface " + interface + ": another program takes its packets (" +
                       error.what() + "); end that program, or give another interface");
    }
  };
  io::Opened opened = opening();
  if (!opened.fallback.empty()) {
    notices_.add(interface + " uses AF_PACKET, which takes more time per packet than AF_XDP: " +
                 opened.fallback);
  }
  ports_.push_back(std::move(opened.port));
  return *ports_.back();
}

std::vector<std::string> Ports::interfaces() const {
  std::vector<std::string> all;
  for (const auto& port : ports_) all.push_back(port->interface());
  return all;
}

int Ports::descriptor_of(const std::string& interface) const {
  const auto found = std::ranges::find_if(
      ports_, [&](const auto& port) { return port->interface() == interface; });
  return (*found)->descriptor();
}

std::vector<int> Ports::descriptors() const {
  std::vector<int> all;
  for (const auto& port : ports_) all.push_back(port->descriptor());
  return all;
}

bool Ports::is_cheap_to_read() const {
  return std::ranges::all_of(ports_, [](const auto& port) { return port->is_cheap_to_read(); });
}

bool Ports::receive(io::Port& port, std::vector<io::Arrival>& arrivals) {
  const std::size_t before = arrivals.size();
  try {
    const bool more = port.receive(arrivals);
    const auto new_arrivals = std::span(arrivals).subspan(before);
    complete_checksums(port, new_arrivals);
    if (!new_arrivals.empty() && new_arrivals.back().monotonic_ns >= behind_[&port].next_check_ns) {
      behind_[&port].next_check_ns = new_arrivals.back().monotonic_ns + 1'000'000'000;
      note_oversized(port);
    }
    return more;
  } catch (const std::system_error& error) {
    notices_.add(error.what());
    return false;
  }
}

void Ports::note_oversized(io::Port& port) {
  Behind& behind = behind_[&port];
  if (behind.oversized_noted || port.counters().oversized == 0) return;
  behind.oversized_noted = true;
  notices_.add(
      port.interface() +
      ": frames longer than its MTU arrive and are discarded, because the host behind it leaves "
      "segmentation to hardware that does not exist. Switch this offload off at the host: "
      "ethtool -K INTERFACE tx off");
}

void Ports::note_oversized() {
  for (const auto& port : ports_) note_oversized(*port);
}

void Ports::complete_checksums(const io::Port& port, std::span<const io::Arrival> arrivals) {
  for (const auto& [frame, monotonic_ns] : arrivals) {
    io::IpHeader header({pool_.data(frame.slot) + frame.offset, frame.length});
    if (!header.complete_checksum() || ++behind_[&port].checksums_completed != 1) continue;
    notices_.add(port.interface() +
                 ": the host behind it leaves checksums to hardware that does not exist, so they "
                 "are completed here. Switch this offload off at the host: "
                 "ethtool -K INTERFACE tx off");
  }
}

json Ports::account_of(const io::Port& port, const io::PortCounters& count) const {
  json switched_off = json::array();
  for (const SwitchedOff& off : switched_off_) {
    if (off.interface == port.interface()) switched_off.push_back(off.offload);
  }
  const auto behind = behind_.find(&port);
  return {{"interface", port.interface()},
          {"io", port.kind()},
          {"received", count.received},
          {"sent", count.sent},
          {"socket_drops", count.socket_drops},
          {"oversized", count.oversized},
          {"checksum_missing", behind == behind_.end() ? 0 : behind->second.checksums_completed},
          {"send_failures", count.send_failures},
          {"offloads_switched_off", switched_off}};
}

}  // namespace nagi::runtime
