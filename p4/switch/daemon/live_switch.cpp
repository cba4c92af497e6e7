// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/live_switch.hpp"

#include <algorithm>
#include <utility>

#include "io/clock.hpp"
#include "switch/daemon/load.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

std::vector<std::string> interfaces_of(const SwitchConfig& config) {
  std::vector<std::string> all;
  for (const PortConfig& port : config.ports) all.push_back(port.interface);
  return all;
}

/// Return the expected load: the number of frames that fit into the queues. Rates of arrivals are
/// unknown.
runtime::Expected expected_of(const SwitchConfig& config) {
  runtime::Expected expected;
  expected.rates.resize(config.ports.size());
  for (const PortConfig& port : config.ports) {
    constexpr std::uint64_t usual_bytes = runtime::usual_frame_bits / 8;
    const QueueConfig& queue = port.queue;
    const std::uint64_t packets = queue.depth_packets ? *queue.depth_packets
                                  : queue.depth_bytes ? queue.depth_bytes->count / usual_bytes
                                                      : 0;
    expected.frames_in_flight +=
        static_cast<std::size_t>(queue.priorities * std::min<std::uint64_t>(packets, 1U << 20));
  }
  return expected;
}

}  // namespace

LiveSwitch::LiveSwitch(const SwitchConfig& config)
    : config_(config),
      time_(config.epoch_realtime_ns),
      started_realtime_ns_(io::read_clock(CLOCK_REALTIME)),
      program_(load_program_file(config.pipeline)),
      ports_(config, interfaces_of(config), expected_of(config), notices_),
      logs_(config_, time_.epoch_realtime_ns(), io::WhenBehind::lose),
      switch_(config, std::move(program_), ports_.pool(),
              logs_.wants_drops() ? [this](const Drop& drop) { logs_.add(drop); }
                                  : std::function<void(const Drop&)>()),
      controller_(switch_, {[this] { bring_up_to_date(); },
                            [this](std::size_t port) {
                              live_[port].account.changed(switch_.queue(port), switch_.now());
                              hand_over();
                            },
                            [this] { return logs_.digests_for_controller(); },
                            [this] { return account(false); }}),
      live_(config.ports.size()) {
  // Load the entries first, so that invalid entries are found before an interface is changed.
  if (!config.entries.empty()) controller_.load(config.entries);
  for (std::size_t i = 0; i < live_.size(); ++i) {
    live_[i].port = &ports_.open(config.ports[i].interface);
  }
  switch_.advance(std::max(switch_.now(), time_.now()));
  if (logs_.wants_samples()) {
    switch_.sample_every(config.queue_interval, [this](Instant) { logs_.sample(switch_); });
  }
}

runtime::Served LiveSwitch::serve(const std::vector<int>& readable) {
  // Read the clock before the ports. All earlier arrivals are then in the ports' queues, so that
  // the switch may advance to this time after receive().
  const Instant now = time_.now();
  runtime::Served served;
  served.now_ns = time_.monotonic_ns(now);
  const bool more = receive(readable);
  served.frames = arrivals_.size();
  take_in();
  if (!more && now > switch_.now()) switch_.advance(now);
  logs_.take_digests(switch_);
  served.frames += switch_.departures().size();
  hand_over();

  if (more) {
    served.next_delivery_ns = served.now_ns;
  } else if (const auto next = switch_.next_departure()) {
    served.next_delivery_ns = time_.monotonic_ns(*next);
  }
  served.quiet = !served.next_delivery_ns;
  return served;
}

bool LiveSwitch::receive(const std::vector<int>& readable) {
  bool more = false;
  bool of_one_port = true;
  arrivals_.clear();
  for (std::size_t i = 0; i < live_.size(); ++i) {
    io::Port& port = *live_[i].port;
    if (!port.is_cheap_to_read() &&
        std::ranges::find(readable, port.descriptor()) == readable.end()) {
      continue;
    }
    batch_.clear();
    more = ports_.receive(port, batch_) || more;
    of_one_port = of_one_port && (batch_.empty() || arrivals_.empty());
    for (const io::Arrival& arrival : batch_) arrivals_.push_back({i, arrival});
  }
  if (!of_one_port) {
    std::ranges::stable_sort(arrivals_, {},
                             [](const Arrival& arrival) { return arrival.arrival.monotonic_ns; });
  }
  return more;
}

void LiveSwitch::take_in() {
  for (const Arrival& each : arrivals_) {
    // The kernel timestamps a frame before it queues the frame, so the switch may already have
    // passed the timestamp when the frame becomes visible.
    const Instant stamped = time_.from_monotonic(each.arrival.monotonic_ns);
    const Instant at = std::max(stamped, switch_.now());
    live_[each.port].account.came(at - stamped);
    switch_.arrive(each.port, each.arrival.frame, at);
  }
}

void LiveSwitch::bring_up_to_date() {
  // Frames that have arrived by now must be processed before the controller's change.
  std::vector<int> all = ports_.descriptors();
  const Instant now = time_.now();
  receive(all);
  take_in();
  if (now > switch_.now()) switch_.advance(now);
}

void LiveSwitch::hand_over() {
  for (const Departure& departure : switch_.departures()) {
    live_[departure.port].due.push_back(departure);
  }
  switch_.departures().clear();
  for (LivePort& port : live_) hand_over(port);
}

void LiveSwitch::hand_over(LivePort& port) {
  if (port.due.empty()) return;
  frames_.clear();
  for (const Departure& departure : port.due) frames_.push_back(departure.frame);
  // The delay of a frame ends when the kernel has finished the frames before it. Work of the kernel
  // after that, including reception at the far end, does not count.
  const Instant begun = time_.now();
  port.port->send(frames_);
  const auto total_ns = static_cast<double>((time_.now() - begun).count());
  const double ns_per_frame = total_ns / static_cast<double>(frames_.size());
  double waited_ns = 0;
  for (const Departure& departure : port.due) {
    port.account.handed_over(departure, begun + Duration{static_cast<std::int64_t>(waited_ns)});
    waited_ns += ns_per_frame;
  }
  port.due.clear();
}

void LiveSwitch::finish() {
  ports_.note_oversized();
  logs_.take_digests(switch_);
  if (logs_.wants_samples()) logs_.sample(switch_);
  for (const std::string& trouble : logs_.close()) notices_.add(trouble);
}

json LiveSwitch::account(bool complete) {
  json ports = json::array();
  for (std::size_t i = 0; i < live_.size(); ++i) {
    json port = live_[i].account.to_json(switch_, i);
    port["number"] = config_.ports[i].number;
    port["interface"] = ports_.account_of(*live_[i].port, live_[i].port->counters());
    ports.push_back(std::move(port));
  }
  json account = runtime::account_head("nagi-switch", config_, privileges_, complete);
  account.update({{"epoch_realtime_ns", time_.epoch_realtime_ns()},
                  {"started_realtime_ns", started_realtime_ns_},
                  {"ended_realtime_ns", io::read_clock(CLOCK_REALTIME)},
                  {"records_lost", logs_.lost()},
                  {"digests_not_fetched", logs_.digests_not_fetched()},
                  {"notices", notices_.all()},
                  {"p4", program_account(switch_)},
                  {"ports", std::move(ports)}});
  return account;
}

}  // namespace nagi::p4
