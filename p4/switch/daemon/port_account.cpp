// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/port_account.hpp"

#include "service/account.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

json rates_of(const AchievedRate::Sum& sum) {
  const double seconds = std::chrono::duration<double>(sum.length).count();
  const auto per_second = [&](std::uint64_t count) {
    return sum.intervals == 0 ? json() : json(static_cast<double>(count) / seconds);
  };
  return {{"intervals", sum.intervals},
          {"packets", sum.packets},
          {"bytes", sum.bytes.count},
          {"length_ns", sum.length.count()},
          {"rate_bps", per_second(8 * sum.bytes.count)},
          {"rate_pps", per_second(sum.packets)}};
}

}  // namespace

void PortAccount::changed(const QueueConfig& queue, Instant at) {
  rate_.end();
  changes_.push_back({{"at_ns", at.time_since_epoch().count()}, {"queue", p4::to_json(queue)}});
}

json PortAccount::to_json(const Switch& p4_switch, std::size_t port) const {
  const InputCounters& in = p4_switch.input(port);
  const OutputCounters& out = p4_switch.output(port);
  const Depth waiting = p4_switch.depth(port).now();
  const QueueStatistics::Stretch depth = p4_switch.depth(port).until(p4_switch.now());
  return {{"queue", p4::to_json(p4_switch.queue(port))},
          {"changes", changes_},
          {"in",
           {{"packets", in.received},
            {"bytes", in.received_bytes.count},
            {"dropped_by_program", in.dropped_by_program},
            {"no_such_port", in.no_such_port}}},
          {"out",
           {{"queued", out.queued},
            {"packets", out.sent - (p4_switch.is_sending(port) ? 1U : 0U)},
            {"sending", p4_switch.is_sending(port)},
            {"waiting", waiting.packets},
            {"queue_overflows", out.queue_full},
            {"no_such_priority", out.no_such_priority},
            {"dropped_by_program", out.dropped_in_egress}}},
          {"server",
           {{"packets", out.sent},
            {"bytes", out.served_bytes.count},
            {"ip_bytes", out.sent_bytes.count},
            {"busy_ns", out.serving.count()}}},
          {"backlogged", rates_of(rate_.sum())},
          {"depth",
           {{"max_packets", depth.maximum.packets},
            {"max_bytes", depth.maximum.bytes.count},
            {"mean_packets", depth.mean_packets},
            {"mean_bytes", depth.mean_bytes}}},
          {"arrival_lateness_ns", runtime::account_of(arrival_lateness_)},
          {"added_delay_ns", runtime::account_of(added_delay_)},
          {"late_events", late_events_}};
}

json controller_account(const Switch& p4_switch) {
  if (!p4_switch.has_cpu_port()) return nullptr;
  const std::size_t cpu_port = p4_switch.ports();
  return {{"packets_out", p4_switch.input(cpu_port).received},
          {"packets_in", p4_switch.output(cpu_port).sent},
          {"packets_in_lost", p4_switch.packets_in_lost()}};
}

json program_account(const Switch& p4_switch) {
  const Counters count = p4_switch.counters();
  return {{"file", p4_switch.machine().file()},
          {"replaced", p4_switch.replaced()},
          {"controller", controller_account(p4_switch)},
          {"notices", p4_switch.machine().describe().notices},
          {"received", count.received},
          {"copies", count.copies},
          {"resubmitted", count.resubmitted},
          {"recirculated", count.recirculated},
          {"sent", count.sent},
          {"replicated", count.replicated},
          {"discarded", count.discarded},
          {"dropped",
           {{"ingress", count.dropped_for(DropCause::ingress)},
            {"malformed", count.dropped_for(DropCause::malformed)},
            {"checksum", count.dropped_for(DropCause::checksum)},
            {"recirculated", count.dropped_for(DropCause::recirculated)},
            {"no_group", count.dropped_for(DropCause::no_group)},
            {"egress", count.dropped_for(DropCause::egress)},
            {"assertion", count.dropped_for(DropCause::assertion)},
            {"rounds", count.dropped_for(DropCause::rounds)},
            {"too_long", count.dropped_for(DropCause::too_long)},
            {"endless_copies", p4_switch.endless_copies()}}},
          {"parser_errors", count.parser_errors},
          {"checksum_errors", count.checksum_errors},
          {"clones_without_session", count.clones_without_session},
          {"digests_lost", count.digests_lost},
          {"outside_array", count.outside_array}};
}

}  // namespace nagi::p4
