// SPDX-License-Identifier: Apache-2.0
#include "native/match.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/capture_file.hpp"
#include "native/python/columns.hpp"
#include "native/python/module.hpp"
#include "native/python/signals.hpp"

namespace nagi::captures::python {

namespace {

struct MatchRow {
  std::int64_t connection;
  unsigned direction;
  const MatchedConnection* matched;
  [[nodiscard]] const MatchedDirection& flow() const { return matched->directions[direction]; }
  [[nodiscard]] std::int64_t received() const { return flow().sent - flow().lost; }
};

double mean_per(double sum, std::int64_t count) {
  return count == 0 ? nan : sum / static_cast<double>(count);
}

nb::dict match_columns(const std::vector<MatchRow>& rows) {
  using Row = MatchRow;
  Table<Row> table(rows);
  table.add("connection", [](const Row& row) { return row.connection; });
  table.add("direction", [](const Row& row) { return std::int64_t{row.direction}; });
  table.add("forward", [](const Row& row) { return row.flow().forward; });
  table.add("sent_connection",
            [](const Row& row) { return std::int64_t{row.matched->numbers[0]}; });
  table.add("received_connection",
            [](const Row& row) { return std::int64_t{row.matched->numbers[1]}; });
  add_endpoints(table, [](const Row& row) { return row.matched->endpoints[row.direction]; });
  table.add("sent", [](const Row& row) { return row.flow().sent; });
  table.add("received", [](const Row& row) { return row.received(); });
  table.add("lost", [](const Row& row) { return row.flow().lost; });
  table.add("data_sent", [](const Row& row) { return row.flow().data_sent; });
  table.add("data_received",
            [](const Row& row) { return row.flow().data_sent - row.flow().data_lost; });
  table.add("data_lost", [](const Row& row) { return row.flow().data_lost; });
  table.add("unseen", [](const Row& row) { return row.flow().unseen; });
  table.add("uncovered", [](const Row& row) { return row.flow().uncovered; });
  // A delay is the smallest delay of the direction plus the queueing delay.
  const auto smallest = [](const Row& row) {
    return static_cast<double>(row.flow().smallest_delay());
  };
  table.add("delay_min_ns", [](const Row& row) {
    return number_or_nan(row.received() != 0, row.flow().min_delay);
  });
  table.add("delay_mean_ns",
            [](const Row& row) { return mean_per(row.flow().delay_sum, row.received()); });
  const std::pair<const char*, double> quantiles[] = {
      {"median", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
  for (const auto& [name, share] : quantiles) {
    table.add((std::string("delay_") + name + "_ns").c_str(), [=, share = share](const Row& row) {
      return smallest(row) + row.flow().queueing.quantile(share);
    });
  }
  table.add("delay_max_ns",
            [=](const Row& row) { return smallest(row) + row.flow().queueing.max(); });
  table.add("queueing_mean_ns", [](const Row& row) { return row.flow().queueing.mean(); });
  for (const auto& [name, share] : quantiles) {
    table.add((std::string("queueing_") + name + "_ns").c_str(),
              [share = share](const Row& row) { return row.flow().queueing.quantile(share); });
  }
  table.add("queueing_max_ns", [](const Row& row) { return row.flow().queueing.max(); });
  using Periods = LossPattern::Periods;
  const auto bursts = [](const Row& row) -> const Periods& { return row.flow().pattern.bursts(); };
  const auto gaps = [](const Row& row) -> const Periods& { return row.flow().pattern.gaps(); };
  const auto density = [](const Periods& all) {
    return all.packets == 0 ? 0.0
                            : static_cast<double>(all.lost) / static_cast<double>(all.packets);
  };
  table.add("bursts", [=](const Row& row) { return bursts(row).count; });
  table.add("gaps", [=](const Row& row) { return gaps(row).count; });
  table.add("burst_density", [=](const Row& row) { return density(bursts(row)); });
  table.add("gap_density", [=](const Row& row) { return density(gaps(row)); });
  const auto packets = [](const Periods& all) {
    return mean_per(static_cast<double>(all.packets), all.count);
  };
  const auto milliseconds = [](const Periods& all) {
    return mean_per(all.time_ns / 1e6, all.count);
  };
  table.add("burst_packets", [=](const Row& row) { return packets(bursts(row)); });
  table.add("burst_ms", [=](const Row& row) { return milliseconds(bursts(row)); });
  table.add("gap_packets", [=](const Row& row) { return packets(gaps(row)); });
  table.add("gap_ms", [=](const Row& row) { return milliseconds(gaps(row)); });
  table.add("loss_runs", [](const Row& row) {
    std::int64_t count = 0;
    for (const auto& run : row.flow().pattern.runs()) count += run.second;
    return count;
  });
  table.add("loss_run_mean", [](const Row& row) {
    std::int64_t count = 0;
    for (const auto& run : row.flow().pattern.runs()) count += run.second;
    return mean_per(static_cast<double>(row.flow().lost), count);
  });
  table.add("loss_run_max", [](const Row& row) {
    const auto& runs = row.flow().pattern.runs();
    return runs.empty() ? std::int64_t{0} : runs.rbegin()->first;
  });
  return table.columns();
}

nb::dict match_runs(const std::vector<MatchRow>& flows) {
  struct Row {
    std::int64_t flow;
    std::int64_t length;
    std::int64_t count;
  };
  std::vector<Row> rows;
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    for (const auto& [length, count] : flows[flow].flow().pattern.runs()) {
      rows.push_back({static_cast<std::int64_t>(flow), length, count});
    }
  }
  Table<Row> table(std::move(rows));
  table.add("flow", [](const Row& row) { return row.flow; });
  table.add("length", [](const Row& row) { return row.length; });
  table.add("count", [](const Row& row) { return row.count; });
  return table.columns();
}

nb::object delays(const SmallestDelays& smallest) {
  const auto to_object = [](std::int64_t delay) -> nb::object {
    return delay == SmallestDelays::none ? nb::none() : nb::cast(delay);
  };
  return nb::make_tuple(to_object(smallest.forward), to_object(smallest.backward));
}

}  // namespace

nb::dict match(const nb::bytes& sent, const nb::bytes& received,
               std::optional<std::int64_t> start_ns, std::optional<std::int64_t> end_ns,
               bool complete, std::vector<ClockCurve::Knot> sent_clock,
               std::vector<ClockCurve::Knot> received_clock) {
  const std::array<std::string, 2> names = {std::string(sent.c_str(), sent.size()),
                                            std::string(received.c_str(), received.size())};
  MatchOptions options;
  if (start_ns) options.start_ns = *start_ns;
  if (end_ns) options.end_ns = *end_ns;
  options.complete = complete;
  options.clocks = {ClockCurve(std::move(sent_clock)), ClockCurve(std::move(received_clock))};
  Matcher matcher(
      [&](int which) {
        return std::make_unique<CaptureFile>(names[static_cast<std::size_t>(which)]);
      },
      options);
  {
    const nb::gil_scoped_release free;
    while (matcher.work(packets_between_signals)) check_signals();
  }
  std::vector<MatchRow> rows;
  for (const MatchedConnection& connection : matcher.connections()) {
    const auto number = static_cast<std::int64_t>(rows.size() / 2);
    rows.push_back({number, 0, &connection});
    rows.push_back({number, 1, &connection});
  }
  nb::dict result;
  result["flows"] = match_columns(rows);
  result["runs"] = match_runs(rows);
  nb::list damage;
  for (const std::string& problem : matcher.damage()) damage.append(problem);
  result["damage"] = damage;
  result["smallest"] = delays(matcher.smallest());
  result["smallest_first"] = delays(matcher.smallest_first());
  result["smallest_last"] = delays(matcher.smallest_last());
  result["span_ns"] = matcher.span_ns();
  return result;
}

}  // namespace nagi::captures::python
