// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/logs.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "service/service.hpp"
#include "switch/daemon/operation_values.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {
constexpr std::size_t max_for_controller = 65'536;  // digests
}  // namespace

Logs::Logs(const SwitchConfig& config, std::int64_t epoch_realtime_ns, io::WhenBehind when_behind)
    : config_(config),
      epoch_realtime_ns_(epoch_realtime_ns),
      previous_counts_(config.ports.size()) {
  if (!config.digests.empty()) {
    digests_ = runtime::make_file<io::BackgroundFile>(config.digests, when_behind);
  }
  if (!config.queues.empty()) {
    queues_ = runtime::make_file<io::BackgroundFile>(config.queues, when_behind);
  }
  if (!config.drops.empty()) {
    std::vector<std::string> names;
    for (const PortConfig& port : config.ports) {
      names.push_back(std::to_string(port.number) + ".in");
      names.push_back(std::to_string(port.number) + ".out");
    }
    if (config.cpu_port) names.insert(names.end(), {"cpu.in", "cpu.out"});
    drops_ = runtime::make_file<io::PcapngFile>(config.drops, "nagi-switch", names,
                                                io::PcapngFile::headers, when_behind);
  }
}

void Logs::start() {
  for (const File& each : files()) each.file->start();
}

void Logs::append(io::BackgroundFile& file, const json& line) {
  const std::string text = line.dump() + "\n";
  file.append(std::as_bytes(std::span(text)));
}

void Logs::add(const Drop& drop) {
  const auto interface =
      static_cast<std::uint32_t>(2 * drop.port) + (drop.side == Drop::Side::out ? 1U : 0U);
  drops_->add(interface, drop.at.time_since_epoch().count() + epoch_realtime_ns_,
              drop.headers.bytes.data(), drop.headers.length, drop.cause);
}

void Logs::sample(Switch& p4_switch) {
  for (std::size_t port = 0; port < p4_switch.ports(); ++port) {
    const OutputCounters& out = p4_switch.output(port);
    const QueueStatistics::Stretch depth = p4_switch.take_depth(port);
    const Depth waiting = p4_switch.depth(port).now();
    const PreviousCounts before = std::exchange(
        previous_counts_[port], PreviousCounts{out.sent, out.sent_bytes.count, out.queue_full});
    if (depth.maximum.packets == 0 && out.sent == before.sent &&
        out.queue_full == before.overflows) {
      continue;
    }
    append(*queues_, {{"at_ns", p4_switch.now().time_since_epoch().count()},
                      {"port", config_.ports[port].number},
                      {"packets", waiting.packets},
                      {"bytes", waiting.bytes.count},
                      {"max_packets", depth.maximum.packets},
                      {"mean_packets", depth.mean_packets},
                      {"mean_bytes", depth.mean_bytes},
                      {"sent_packets", out.sent - before.sent},
                      {"sent_bytes", out.sent_bytes.count - before.bytes},
                      {"overflows", out.queue_full - before.overflows}});
  }
}

void Logs::take_digests(Switch& p4_switch) {
  for (const Digest& digest : p4_switch.take_digests()) {
    json values = json::array();
    for (const Bytes& value : digest.values) values.push_back(number_to_json(value));
    json line = {
        {"at_ns", digest.at_us * 1000}, {"digest", digest.name}, {"values", std::move(values)}};
    if (digests_) append(*digests_, line);
    if (for_controller_.size() == max_for_controller) {
      for_controller_.pop_front();
      ++digests_not_fetched_;
    }
    for_controller_.push_back(std::move(line));
  }
}

json Logs::digests_for_controller() {
  json all = json::array();
  for (json& each : for_controller_) all.push_back(std::move(each));
  for_controller_.clear();
  return all;
}

std::vector<Logs::File> Logs::files() const {
  std::vector<File> all;
  if (digests_) all.push_back({config_.digests, digests_.get()});
  if (queues_) all.push_back({config_.queues, queues_.get()});
  if (drops_) all.push_back({config_.drops, &drops_->file()});
  return all;
}

std::vector<std::string> Logs::close() {
  std::vector<std::string> troubles;
  for (const File& each : files()) {
    std::string trouble = runtime::close_file(each.path, *each.file);
    if (!trouble.empty()) troubles.push_back(std::move(trouble));
  }
  return troubles;
}

std::uint64_t Logs::lost() const {
  std::uint64_t all = 0;
  for (const File& each : files()) all += each.file->lost();
  return all;
}

}  // namespace nagi::p4
