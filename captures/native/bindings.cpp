// SPDX-License-Identifier: Apache-2.0
//
// The module nagi_captures_native, which captures/nagi_captures/capture.py makes tables of. Columns
// are NumPy arrays that own what the reader wrote: nothing is copied. The interpreter is free for
// other threads while a file is read, and asked for signals every some hundred thousand packets.
#include <arpa/inet.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "native/capture_file.hpp"
#include "native/flows.hpp"
#include "native/match.hpp"

namespace nb = nanobind;

namespace {

using namespace nagi::captures;

constexpr std::int64_t packets_between_signals = 200'000;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A column that becomes a NumPy array without being copied.
template <typename T>
nb::object array(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* gone) noexcept { delete static_cast<std::vector<T>*>(gone); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

/// std::vector<bool> has no array to give away.
class Flags {
 public:
  explicit Flags(std::size_t most) : values_(std::make_unique<bool[]>(most)) {}
  void push_back(bool value) { values_[size_++] = value; }
  nb::object array() {
    bool* data = values_.release();
    nb::capsule owner(data, [](void* gone) noexcept { delete[] static_cast<bool*>(gone); });
    return nb::cast(nb::ndarray<nb::numpy, bool, nb::ndim<1>>(data, {size_}, owner));
  }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_ = 0;
};

/// The columns of a table, made by what each row's value is.
template <typename Row>
class Table {
 public:
  explicit Table(std::vector<Row> rows) : rows_(std::move(rows)) {}

  template <typename Value>
  void add(const char* name, Value value) {
    using T = std::decay_t<decltype(value(rows_[0]))>;
    if constexpr (std::is_same_v<T, bool>) {
      Flags flags(rows_.size());
      for (const Row& row : rows_) flags.push_back(value(row));
      columns_[name] = flags.array();
    } else if constexpr (std::is_same_v<T, std::string>) {
      nb::list texts;
      for (const Row& row : rows_) texts.append(value(row));
      columns_[name] = texts;
    } else {
      std::vector<T> values;
      values.reserve(rows_.size());
      for (const Row& row : rows_) values.push_back(value(row));
      columns_[name] = array(std::move(values));
    }
  }
  [[nodiscard]] nb::dict columns() const { return columns_; }

 private:
  std::vector<Row> rows_;
  nb::dict columns_;
};

std::string address_text(const std::array<std::uint64_t, 2>& address, std::uint8_t version) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(version == 6 ? AF_INET6 : AF_INET, address.data(), text.data(), text.size());
  return text.data();
}

template <typename Row, typename Get>
void add_endpoints(Table<Row>& table, Get endpoints) {
  table.add("protocol", [=](const Row& row) {
    return std::string(endpoints(row).protocol() == protocol_tcp ? "tcp" : "udp");
  });
  table.add("source", [=](const Row& row) {
    return address_text(endpoints(row).source, endpoints(row).version());
  });
  table.add("source_port",
            [=](const Row& row) { return std::int64_t{ntohs(endpoints(row).source_port())}; });
  table.add("destination", [=](const Row& row) {
    return address_text(endpoints(row).destination, endpoints(row).version());
  });
  table.add("destination_port",
            [=](const Row& row) { return std::int64_t{ntohs(endpoints(row).destination_port())}; });
}

template <typename Row, typename Get>
void add_distribution(Table<Row>& table, const std::string& name, Get distribution) {
  const auto add = [&](const char* what, auto value) {
    table.add((name + what).c_str(), [=](const Row& row) { return value(distribution(row)); });
  };
  add("_count", [](const Distribution& all) { return static_cast<std::int64_t>(all.count()); });
  add("_min_ns", [](const Distribution& all) { return all.least(); });
  add("_mean_ns", [](const Distribution& all) { return all.mean(); });
  add("_median_ns", [](const Distribution& all) { return all.quantile(0.5); });
  add("_p95_ns", [](const Distribution& all) { return all.quantile(0.95); });
  add("_p99_ns", [](const Distribution& all) { return all.quantile(0.99); });
  add("_max_ns", [](const Distribution& all) { return all.most(); });
}

struct FlowRow {
  const Connection* connection;
  unsigned direction;
  [[nodiscard]] const Direction& it() const { return connection->directions[direction]; }
};

double mean(const Extent& extent) {
  return extent.count == 0 ? nan
                           : static_cast<double>(extent.sum) / static_cast<double>(extent.count);
}
double number_or_nan(bool there, std::int64_t value) {
  return there ? static_cast<double>(value) : nan;
}

nb::dict flow_columns(Engine& engine) {
  std::vector<FlowRow> rows;
  for (const Connection& connection : engine.connections()) {
    rows.push_back({&connection, 0});
    rows.push_back({&connection, 1});
  }
  using Row = FlowRow;
  Table<Row> table(std::move(rows));
  table.add("connection", [](const Row& row) { return std::int64_t{row.connection->number}; });
  table.add("direction", [](const Row& row) { return std::int64_t{row.direction}; });
  add_endpoints(table, [](const Row& row) { return row.connection->endpoints[row.direction]; });
  const auto number = [&](const char* name, auto member) {
    table.add(name, [=](const Row& row) { return std::int64_t{row.it().*member}; });
  };
  number("first_ns", &Direction::first_ns);
  number("last_ns", &Direction::last_ns);
  number("first_data_ns", &Direction::first_data_ns);
  number("last_data_ns", &Direction::last_data_ns);
  const std::pair<const char*, std::int64_t Counts::*> counts[] = {
      {"packets", &Counts::packets},
      {"ip_bytes", &Counts::ip_bytes},
      {"payload_bytes", &Counts::payload_bytes},
      {"data_packets", &Counts::data_packets},
      {"first_time_bytes", &Counts::first_time_bytes},
      {"retransmitted_packets", &Counts::retransmitted_packets},
      {"retransmitted_bytes", &Counts::retransmitted_bytes},
      {"out_of_order_packets", &Counts::out_of_order_packets},
  };
  for (const auto& [name, member] : counts) {
    table.add(name, [member = member](const Row& row) {
      return row.it().counts[0].*member + row.it().counts[1].*member;
    });
  }
  for (const auto& [name, member] : counts) {
    table.add((std::string(name) + "_inside").c_str(),
              [member = member](const Row& row) { return row.it().counts[1].*member; });
  }
  number("duplicate_acks", &Direction::duplicate_acks);
  number("sack_packets", &Direction::sack_packets);
  number("sack_blocks", &Direction::sack_blocks);
  number("keep_alives", &Direction::keep_alives);
  number("zero_window_packets", &Direction::zero_window_packets);
  number("window_probes", &Direction::window_probes);
  number("mss", &Direction::mss);
  number("window_scale", &Direction::window_scale);
  table.add("sack_permitted", [](const Row& row) { return row.it().sack_permitted; });
  table.add("timestamps", [](const Row& row) { return row.it().timestamps; });
  number("syn_packets", &Direction::syn_packets);
  number("fin_packets", &Direction::fin_packets);
  number("rst_packets", &Direction::rst_packets);
  table.add("complete_handshake",
            [](const Row& row) { return row.connection->complete_handshake; });
  add_distribution(table, "rtt_sequence",
                   [](const Row& row) -> const Distribution& { return row.it().rtt_sequence; });
  add_distribution(table, "rtt_timestamps",
                   [](const Row& row) -> const Distribution& { return row.it().rtt_timestamps; });
  table.add("in_flight_mean_bytes", [](const Row& row) { return mean(row.it().in_flight); });
  table.add("in_flight_max_bytes", [](const Row& row) {
    return number_or_nan(row.it().in_flight.count != 0, row.it().in_flight.most);
  });
  table.add("window_min_bytes", [](const Row& row) {
    return number_or_nan(row.it().window.count != 0, row.it().window.least);
  });
  table.add("window_mean_bytes", [](const Row& row) { return mean(row.it().window); });
  table.add("window_max_bytes", [](const Row& row) {
    return number_or_nan(row.it().window.count != 0, row.it().window.most);
  });
  return table.columns();
}

nb::dict series_columns(Engine& engine, std::int64_t interval_ns) {
  struct Row {
    std::int64_t flow;
    const SeriesRow* at;
  };
  std::vector<Row> rows;
  for (const Connection& connection : engine.connections()) {
    for (unsigned direction = 0; direction < 2; ++direction) {
      for (const SeriesRow& each : connection.directions[direction].series) {
        rows.push_back({2 * std::int64_t{connection.number} + direction, &each});
      }
    }
  }
  Table<Row> table(std::move(rows));
  const std::int64_t origin_ns = engine.origin_ns();
  table.add("flow", [](const Row& row) { return row.flow; });
  table.add("start_ns", [=](const Row& row) { return origin_ns + row.at->index * interval_ns; });
  table.add("payload_bytes", [](const Row& row) { return row.at->payload_bytes; });
  table.add("first_time_bytes", [](const Row& row) { return row.at->first_time_bytes; });
  table.add("retransmitted_packets", [](const Row& row) { return row.at->retransmitted_packets; });
  table.add("in_flight_max_bytes", [](const Row& row) {
    return number_or_nan(row.at->in_flight_most >= 0, row.at->in_flight_most);
  });
  table.add("rtt_mean_ns", [](const Row& row) {
    return row.at->rtt_count == 0 ? nan : row.at->rtt_sum / static_cast<double>(row.at->rtt_count);
  });
  table.add("rtt_max_ns",
            [](const Row& row) { return number_or_nan(row.at->rtt_count != 0, row.at->rtt_most); });
  table.add("window_bytes",
            [](const Row& row) { return number_or_nan(row.at->window >= 0, row.at->window); });
  return table.columns();
}

void let_signals_in() {
  const nb::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::dict scan(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, std::int64_t interval_ns) {
  Options options;
  if (start_ns) options.start_ns = *start_ns;
  if (end_ns) options.end_ns = *end_ns;
  options.interval_ns = interval_ns;
  Engine engine(options);
  Totals totals;
  std::string damage;
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    CaptureFile file(name);
    while (scan_some(file, engine, totals, packets_between_signals)) let_signals_in();
    damage = file.damage();
  }
  nb::dict result;
  result["packets"] = totals.packets;
  result["bytes"] = totals.bytes;
  result["first_ns"] = totals.packets == 0 ? 0 : totals.first_ns;
  result["last_ns"] = totals.packets == 0 ? 0 : totals.last_ns;
  result["damage"] = damage;
  nb::dict unused;
  for (std::size_t reason = 1; reason < unused_reasons; ++reason) {
    if (totals.unused[reason] != 0) unused[unused_names[reason]] = totals.unused[reason];
  }
  result["unused"] = unused;
  result["flows"] = flow_columns(engine);
  if (interval_ns != 0) result["series"] = series_columns(engine, interval_ns);
  return result;
}

/// The packets of a file, some rows at a time.
class PacketReader {
 public:
  PacketReader(const nb::bytes& path, std::size_t rows)
      : rows_(rows), file_(std::string(path.c_str(), path.size())) {}

  /// The next columns; nothing after the last.
  std::optional<nb::dict> next() {
    Columns columns(rows_);
    std::size_t count = 0;
    {
      const nb::gil_scoped_release free;
      Record record;
      Packet packet;
      for (std::int64_t passed = 1; count < rows_ && !ended_; ++passed) {
        if (passed % packets_between_signals == 0) let_signals_in();
        if (!file_.next(record)) {
          ended_ = true;
        } else if (decode(record, packet) == Unused::none) {
          columns.add(packet, engine_.add(packet));
          ++count;
        }
      }
    }
    if (count == 0) return std::nullopt;
    return columns.take();
  }

 private:
  struct Columns {
    explicit Columns(std::size_t rows) : retransmission(rows) {
      time_ns.reserve(rows);
      connection.reserve(rows);
      direction.reserve(rows);
      sequence.reserve(rows);
      acknowledgement.reserve(rows);
      payload.reserve(rows);
      ip_bytes.reserve(rows);
      window.reserve(rows);
      flags.reserve(rows);
      tsval.reserve(rows);
      tsecr.reserve(rows);
      identification.reserve(rows);
      checksum.reserve(rows);
      new_bytes.reserve(rows);
    }
    void add(const Packet& packet, const Seen& seen) {
      time_ns.push_back(packet.time_ns);
      connection.push_back(static_cast<std::int32_t>(seen.connection));
      direction.push_back(static_cast<std::int8_t>(seen.direction));
      sequence.push_back(seen.sequence);
      acknowledgement.push_back(seen.acknowledgement);
      payload.push_back(static_cast<std::int32_t>(packet.payload));
      ip_bytes.push_back(static_cast<std::int32_t>(packet.ip_bytes));
      window.push_back(seen.window);
      flags.push_back(packet.flags);
      tsval.push_back(packet.has_timestamps ? std::int64_t{packet.tsval} : -1);
      tsecr.push_back(packet.has_timestamps ? std::int64_t{packet.tsecr} : -1);
      identification.push_back(packet.identification);
      checksum.push_back(packet.checksum);
      retransmission.push_back(seen.retransmission);
      new_bytes.push_back(static_cast<std::int32_t>(seen.new_bytes));
    }
    nb::dict take() {
      nb::dict all;
      all["time_ns"] = array(std::move(time_ns));
      all["connection"] = array(std::move(connection));
      all["direction"] = array(std::move(direction));
      all["sequence"] = array(std::move(sequence));
      all["acknowledgement"] = array(std::move(acknowledgement));
      all["payload"] = array(std::move(payload));
      all["ip_bytes"] = array(std::move(ip_bytes));
      all["window"] = array(std::move(window));
      all["flags"] = array(std::move(flags));
      all["tsval"] = array(std::move(tsval));
      all["tsecr"] = array(std::move(tsecr));
      all["identification"] = array(std::move(identification));
      all["checksum"] = array(std::move(checksum));
      all["retransmission"] = retransmission.array();
      all["new_bytes"] = array(std::move(new_bytes));
      return all;
    }

    std::vector<std::int64_t> time_ns;
    std::vector<std::int32_t> connection;
    std::vector<std::int8_t> direction;
    std::vector<std::int64_t> sequence;
    std::vector<std::int64_t> acknowledgement;
    std::vector<std::int32_t> payload;
    std::vector<std::int32_t> ip_bytes;
    std::vector<std::int64_t> window;
    std::vector<std::uint8_t> flags;
    std::vector<std::int64_t> tsval;
    std::vector<std::int64_t> tsecr;
    std::vector<std::uint16_t> identification;
    std::vector<std::uint16_t> checksum;
    Flags retransmission;
    std::vector<std::int32_t> new_bytes;
  };

  std::size_t rows_;
  CaptureFile file_;
  Engine engine_{Options{}};
  bool ended_ = false;
};

struct MatchRow {
  std::int64_t connection;
  unsigned direction;
  const MatchedConnection* of;
  [[nodiscard]] const MatchedDirection& it() const { return of->directions[direction]; }
  [[nodiscard]] std::int64_t received() const { return it().sent - it().lost; }
};

double per(double sum, std::int64_t count) {
  return count == 0 ? nan : sum / static_cast<double>(count);
}

nb::dict match_columns(const std::vector<MatchRow>& rows) {
  using Row = MatchRow;
  Table<Row> table(rows);
  table.add("connection", [](const Row& row) { return row.connection; });
  table.add("direction", [](const Row& row) { return std::int64_t{row.direction}; });
  table.add("forward", [](const Row& row) { return row.it().forward; });
  add_endpoints(table, [](const Row& row) { return row.of->endpoints[row.direction]; });
  table.add("sent", [](const Row& row) { return row.it().sent; });
  table.add("received", [](const Row& row) { return row.received(); });
  table.add("lost", [](const Row& row) { return row.it().lost; });
  table.add("data_sent", [](const Row& row) { return row.it().data_sent; });
  table.add("data_received",
            [](const Row& row) { return row.it().data_sent - row.it().data_lost; });
  table.add("data_lost", [](const Row& row) { return row.it().data_lost; });
  table.add("unseen", [](const Row& row) { return row.it().unseen; });
  table.add("uncovered", [](const Row& row) { return row.it().uncovered; });
  // Delays are the smallest one and what was spent in queues.
  const auto smallest = [](const Row& row) {
    return static_cast<double>(row.it().smallest_delay());
  };
  table.add("delay_min_ns", [](const Row& row) {
    return number_or_nan(row.received() != 0, row.it().delay_least);
  });
  table.add("delay_mean_ns",
            [](const Row& row) { return per(row.it().delay_sum, row.received()); });
  const std::pair<const char*, double> quantiles[] = {
      {"median", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
  for (const auto& [name, share] : quantiles) {
    table.add((std::string("delay_") + name + "_ns").c_str(), [=, share = share](const Row& row) {
      return smallest(row) + row.it().queueing.quantile(share);
    });
  }
  table.add("delay_max_ns",
            [=](const Row& row) { return smallest(row) + row.it().queueing.most(); });
  table.add("queueing_mean_ns", [](const Row& row) { return row.it().queueing.mean(); });
  for (const auto& [name, share] : quantiles) {
    table.add((std::string("queueing_") + name + "_ns").c_str(),
              [share = share](const Row& row) { return row.it().queueing.quantile(share); });
  }
  table.add("queueing_max_ns", [](const Row& row) { return row.it().queueing.most(); });
  using Periods = LossPattern::Periods;
  const auto bursts = [](const Row& row) -> const Periods& { return row.it().pattern.bursts(); };
  const auto gaps = [](const Row& row) -> const Periods& { return row.it().pattern.gaps(); };
  const auto density = [](const Periods& all) {
    return all.packets == 0 ? 0.0
                            : static_cast<double>(all.lost) / static_cast<double>(all.packets);
  };
  table.add("bursts", [=](const Row& row) { return bursts(row).count; });
  table.add("gaps", [=](const Row& row) { return gaps(row).count; });
  table.add("burst_density", [=](const Row& row) { return density(bursts(row)); });
  table.add("gap_density", [=](const Row& row) { return density(gaps(row)); });
  const auto packets = [](const Periods& all) {
    return per(static_cast<double>(all.packets), all.count);
  };
  const auto milliseconds = [](const Periods& all) { return per(all.time_ns / 1e6, all.count); };
  table.add("burst_packets", [=](const Row& row) { return packets(bursts(row)); });
  table.add("burst_ms", [=](const Row& row) { return milliseconds(bursts(row)); });
  table.add("gap_packets", [=](const Row& row) { return packets(gaps(row)); });
  table.add("gap_ms", [=](const Row& row) { return milliseconds(gaps(row)); });
  table.add("loss_runs", [](const Row& row) {
    std::int64_t count = 0;
    for (const auto& run : row.it().pattern.runs()) count += run.second;
    return count;
  });
  table.add("loss_run_mean", [](const Row& row) {
    std::int64_t count = 0;
    for (const auto& run : row.it().pattern.runs()) count += run.second;
    return per(static_cast<double>(row.it().lost), count);
  });
  table.add("loss_run_max", [](const Row& row) {
    const auto& runs = row.it().pattern.runs();
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
    for (const auto& [length, count] : flows[flow].it().pattern.runs()) {
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
  const auto one = [](std::int64_t delay) -> nb::object {
    return delay == SmallestDelays::none ? nb::none() : nb::cast(delay);
  };
  return nb::make_tuple(one(smallest.forward), one(smallest.backward));
}

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
    while (matcher.work(packets_between_signals)) let_signals_in();
  }
  std::vector<MatchRow> rows;
  for (const MatchedConnection& connection : matcher.connections()) {
    if (!connection.in_both()) continue;
    const auto number = static_cast<std::int64_t>(rows.size() / 2);
    rows.push_back({number, 0, &connection});
    rows.push_back({number, 1, &connection});
  }
  nb::dict result;
  result["flows"] = match_columns(rows);
  result["runs"] = match_runs(rows);
  nb::list damage;
  for (const std::string& each : matcher.damage()) damage.append(each);
  result["damage"] = damage;
  result["smallest"] = delays(matcher.smallest());
  result["smallest_first"] = delays(matcher.smallest_first());
  result["smallest_last"] = delays(matcher.smallest_last());
  result["span_ns"] = matcher.span_ns();
  return result;
}

}  // namespace

NB_MODULE(nagi_captures_native, module) {
  module.doc() = "Reads captures; see nagi_captures.capture.";
  static PyObject* refused =
      PyErr_NewException("nagi_captures_native.Refused", PyExc_Exception, nullptr);
  module.attr("Refused") = nb::handle(refused);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const CaptureError& error) {
      const nb::tuple says = nb::make_tuple(error.what(), error.cure());
      PyErr_SetObject(refused, says.ptr());
    }
  });
  module.def("scan", &scan, nb::arg("path"), nb::arg("start_ns").none(), nb::arg("end_ns").none(),
             nb::arg("interval_ns"));
  module.def("match", &match, nb::arg("sent"), nb::arg("received"), nb::arg("start_ns").none(),
             nb::arg("end_ns").none(), nb::arg("complete"), nb::arg("sent_clock"),
             nb::arg("received_clock"));
  nb::class_<PacketReader>(module, "PacketReader")
      .def(nb::init<const nb::bytes&, std::size_t>(), nb::arg("path"), nb::arg("rows"))
      .def("next", &PacketReader::next);
}
