// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/switch.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "io/input_error.hpp"
#include "program/control.hpp"

namespace nagi::p4 {

namespace {
// Maximum number of packets that one event may queue. It is larger than usual multicast groups.
// Without a maximum, a program that clones each clone would never end.
constexpr std::size_t max_at_one_instant = 16'384;
constexpr std::size_t max_packets_in = 65'536;

constexpr std::string_view cause_names[drop_causes] = {
    "ingress",
    "ingress, after a parser error",
    "ingress, after a wrong checksum",
    "ingress, recirculated",
    "no such multicast group",
    "egress",
    "failed assertion",
    "resubmitted or recirculated too often",
    "too long",
};
std::unique_ptr<Machine> make_machine(Program program, io::FramePool& pool, std::uint64_t seed) {
  Settings settings;
  settings.seed = seed;
  return std::make_unique<Machine>(std::move(program), pool, settings);
}
}  // namespace

Switch::Switch(const SwitchConfig& config, Program program, io::FramePool& pool,
               std::function<void(const Drop&)> dropped)
    : dropped_(std::move(dropped)),
      pool_(pool),
      seed_(config.seed),
      machine_(make_machine(std::move(program), pool, config.seed)),
      configured_(config.ports.size()) {
  port_indexes_.fill(-1);
  const auto add = [this](const PortConfig& port) {
    port_indexes_[port.number] = static_cast<std::int16_t>(ports_.size());
    ports_.emplace_back(port);
  };
  for (const PortConfig& port : config.ports) add(port);
  if (config.cpu_port) {
    PortConfig controller;
    controller.number = *config.cpu_port;
    add(controller);
  }
}

void Switch::replace(Program program) {
  replaced_machines_.push_back(
      std::exchange(machine_, make_machine(std::move(program), pool_, seed_)));
  ++replaced_;
  remove_idle_machines();
}

Machine& Switch::machine_of(const Packet& packet) {
  for (const auto& machine : replaced_machines_) {
    if (machine->owns(packet)) return *machine;
  }
  return *machine_;
}

void Switch::remove_idle_machines() {
  std::erase_if(replaced_machines_, [this](const std::unique_ptr<Machine>& machine) {
    if (!machine->is_idle()) return false;
    take_digests_of(*machine);
    removed_counters_ += machine->counters();
    return true;
  });
}

Counters Switch::counters() const {
  Counters all = removed_counters_;
  for (const auto& machine : replaced_machines_) all += machine->counters();
  all += machine_->counters();
  return all;
}

void Switch::take_digests_of(Machine& machine) {
  for (Digest& digest : machine.take_digests()) digests_.push_back(std::move(digest));
}

std::vector<Digest> Switch::take_digests() {
  for (const auto& machine : replaced_machines_) take_digests_of(*machine);
  take_digests_of(*machine_);
  return std::exchange(digests_, {});
}

void Switch::arrive(std::size_t index, const std::vector<std::uint8_t>& bytes) {
  // A long frame has less room in front.
  const auto offset = std::min<std::size_t>(headroom, pool_.slot_bytes() - bytes.size());
  const io::Frame frame{pool_.take(), static_cast<std::uint16_t>(offset),
                        static_cast<std::uint32_t>(bytes.size())};
  std::copy(bytes.begin(), bytes.end(), pool_.data(frame.slot) + frame.offset);
  arrive(index, frame, now_);
}

void Switch::arrive_from_controller(const std::vector<std::uint8_t>& bytes) {
  if (!has_cpu_port()) {
    throw InputError(
        "packet_out: the switch has no port for the controller; add cpu_port to the "
        "configuration",
        failed_precondition);
  }
  if (bytes.empty() || bytes.size() > pool_.slot_bytes()) {
    throw InputError("packet_out: a frame of " + std::to_string(bytes.size()) +
                     " bytes; give one of 1 to " + std::to_string(pool_.slot_bytes()));
  }
  arrive(configured_, bytes);
}

Switch::~Switch() {
  for (const Departure& departure : departures_) pool_.give_back(departure.frame.slot);
  for (const SwitchPort& port : ports_) {
    if (port.sending) pool_.give_back(port.sending->frame.slot);
  }
}

std::optional<std::size_t> Switch::port_index(Port number) const {
  if (number >= port_indexes_.size() || port_indexes_[number] < 0) return std::nullopt;
  return static_cast<std::size_t>(port_indexes_[number]);
}

std::optional<Instant> Switch::next_departure() const {
  std::optional<Instant> next;
  for (const SwitchPort& port : ports_) {
    if (port.sending && (!next || port.sending->at < *next)) next = port.sending->at;
  }
  return next;
}

void Switch::arrive(std::size_t index, const io::Frame& frame, Instant at) {
  advance(at);
  SwitchPort& port = ports_[index];
  ++port.in.received;
  port.in.received_bytes += ip_bytes(frame.length);
  Origin origin{index};
  if (dropped_) {
    origin.headers = headers_.keep(pool_.data(frame.slot) + frame.offset, frame.length);
  }
  machine_->ingress(port.number, frame, now_us(), queued_);
  port.in.dropped_by_program += report_drops(*machine_, index, Drop::Side::in, origin);
  while (origins_.size() < queued_.size()) {
    headers_.share(origin.headers);
    origins_.push_back(origin);
  }
  queue_returned_packets();
  headers_.release(origin.headers);
}

void Switch::advance(Instant to) {
  assert(to >= now_);
  for (;;) {
    const auto next = std::ranges::min_element(ports_, {}, [](const SwitchPort& port) {
      return port.sending ? port.sending->at : Instant::max();
    });
    if (!next->sending || next->sending->at > to) break;
    move_to(next->sending->at);
    departures_.push_back(*next->sending);
    next->sending.reset();
    serve(static_cast<std::size_t>(next - ports_.begin()));
    queue_returned_packets();
  }
  move_to(to);
  if (!replaced_machines_.empty()) remove_idle_machines();
}

void Switch::move_to(Instant at) {
  while (next_sample_ <= at) {
    now_ = next_sample_;
    next_sample_ += interval_;
    sample_(now_);
  }
  now_ = at;
}

void Switch::sample_every(Duration interval, std::function<void(Instant)> sample) {
  interval_ = interval;
  sample_ = std::move(sample);
  next_sample_ = now_ + interval;
}

void Switch::change(std::size_t index, const QueueConfig& queue) {
  SwitchPort& port = ports_[index];
  port.out.change(queue, now_);
  if (port.sending) port.sending->at = port.out.busy_until();
  advance(now_);  // without a rate, all waiting packets leave at once
}

// Queueing a packet may run egress, which appends further packets to `queued_`.
void Switch::queue_returned_packets() {
  for (std::size_t i = 0; i < queued_.size(); ++i) {
    Queued queued = std::move(queued_[i]);
    const Origin origin = origins_[i];
    if (i < max_at_one_instant) {
      offer(queued, origin);
    } else {
      ++endless_copies_;
      report_drop(origin.port, Drop::Side::in, "copies without end", origin);
    }
    headers_.release(origin.headers);
  }
  queued_.clear();
  origins_.clear();
}

void Switch::offer(Queued& queued, const Origin& origin) {
  const auto index = port_index(queued.port);
  if (!index) {
    run_egress_without_port(queued, origin);
    return;
  }
  const nagi::Bytes size = ip_bytes(queued.packet->size());
  Item item{std::move(queued.packet), origin};
  headers_.share(origin.headers);
  if (ports_[*index].out.pass(queued.priority, now_)) {
    OutputPort<Item>::Taken taken{std::move(item), queued.priority, now_, 0, 0};
    run_egress(*index, taken);
    return;
  }
  const auto refusal = ports_[*index].out.offer(item, size, queued.priority, now_);
  if (refusal) {
    report_drop(*index, Drop::Side::out,
                *refusal == Refusal::queue_full ? "queue overflow" : "no such priority", origin);
    headers_.release(origin.headers);
    return;
  }
  serve(*index);
}

void Switch::serve(std::size_t index) {
  while (auto taken = ports_[index].out.take(now_)) run_egress(index, *taken);
}

void Switch::run_egress(std::size_t index, OutputPort<Item>::Taken& taken) {
  SwitchPort& port = ports_[index];
  const Origin origin = taken.item.origin;
  const auto us = [](auto since_epoch) {
    return static_cast<std::uint64_t>(since_epoch.count()) / 1000;
  };
  const std::uint64_t queued_us = us(taken.queued.time_since_epoch());
  const QueueTimes times{queued_us, taken.depth_at_enqueue,
                         static_cast<std::uint32_t>(now_us() - queued_us), taken.depth_at_dequeue,
                         taken.priority};
  const Machine& machine = machine_of(*taken.item.packet);
  const auto frame = egress(std::move(taken.item.packet), port.number, times, origin);
  if (report_drops(machine, index, Drop::Side::out, origin) != 0 && !frame) port.out.drop();
  headers_.release(origin.headers);
  if (!frame) return;
  const nagi::Bytes size = ip_bytes(frame->length);
  const Instant until = port.out.send(size, now_);
  if (index == configured_) {
    hand_to_controller(*frame);
    return;
  }
  const Departure departure{index, *frame, until, port.out.counted(size), port.out.follows()};
  if (until > now_) {
    port.sending = departure;
  } else {
    departures_.push_back(departure);
  }
}

void Switch::hand_to_controller(const io::Frame& frame) {
  if (packets_in_.size() < max_packets_in) {
    const std::uint8_t* bytes = pool_.data(frame.slot) + frame.offset;
    packets_in_.push_back({{bytes, bytes + frame.length}, now_});
  } else {
    ++packets_in_lost_;
  }
  pool_.give_back(frame.slot);
}

void Switch::run_egress_without_port(Queued& queued, const Origin& origin) {
  const QueueTimes times{now_us(), 0, 0, 0, 0};
  const Machine& machine = machine_of(*queued.packet);
  const auto frame = egress(std::move(queued.packet), queued.port, times, origin);
  report_drops(machine, origin.port, Drop::Side::in, origin);
  if (!frame) return;
  pool_.give_back(frame->slot);
  ++ports_[origin.port].in.no_such_port;
  report_drop(origin.port, Drop::Side::in, "no such port", origin);
}

std::optional<io::Frame> Switch::egress(PacketPtr packet, Port number, const QueueTimes& times,
                                        const Origin& origin) {
  Machine& machine = machine_of(*packet);
  auto frame = machine.egress(std::move(packet), number, times, now_us(), queued_);
  while (origins_.size() < queued_.size()) {
    headers_.share(origin.headers);
    origins_.push_back(origin);
  }
  return frame;
}

std::size_t Switch::report_drops(const Machine& machine, std::size_t port, Drop::Side side,
                                 const Origin& origin) {
  for (const DropCause cause : machine.drops()) {
    report_drop(port, side, cause_names[static_cast<std::size_t>(cause)], origin);
  }
  return machine.drops().size();
}

void Switch::report_drop(std::size_t port, Drop::Side side, std::string_view cause,
                         const Origin& origin) {
  if (!dropped_) return;
  dropped_({port, side, now_, cause, headers_.at(origin.headers)});
}

}  // namespace nagi::p4
