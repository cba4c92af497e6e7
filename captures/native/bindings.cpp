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

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "native/capture_file.hpp"
#include "native/flow_columns.hpp"
#include "native/flows.hpp"
#include "native/match.hpp"
#include "native/scan.hpp"
#include "native/trace.hpp"

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

double number_or_nan(bool there, std::int64_t value) {
  return there ? static_cast<double>(value) : nan;
}

/// Addresses as numbers of an entry in a list of their texts.
class Addresses {
 public:
  std::int32_t number(const std::array<std::uint64_t, 2>& address, std::uint8_t version) {
    const auto [at, is_new] = numbers_.try_emplace(std::tuple{address[0], address[1], version},
                                                   static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(address_text(address, version));
    return at->second;
  }
  [[nodiscard]] nb::list texts() const {
    nb::list all;
    for (const std::string& each : texts_) all.append(each);
    return all;
  }

 private:
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint8_t>, std::int32_t> numbers_;
  std::vector<std::string> texts_;
};

/// The columns asked for (all, if none), and "addresses", the texts whose places are in `source`
/// and `destination`.
class FlowArrays {
 public:
  FlowArrays(const FlowRows& rows, const std::vector<std::string>& names) : rows_(rows) {
    const auto columns = flow_columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (wants(names, columns[i].name)) wanted_.push_back({i, columns[i].kind});
    }
    make();
  }

  [[nodiscard]] nb::dict columns(const std::vector<std::string>& names) {
    nb::dict all;
    const auto give = [&](const char* name, auto& values) {
      if (wants(names, name)) all[name] = array(std::move(values));
    };
    give("connection", connection_);
    give("direction", direction_);
    give("protocol", protocol_);
    give("source", source_);
    give("source_port", source_port_);
    give("destination", destination_);
    give("destination_port", destination_port_);
    for (Wanted& each : wanted_) {
      const char* name = flow_columns()[each.index].name;
      if (each.kind == Kind::whole) all[name] = array(std::move(each.whole));
      if (each.kind == Kind::real) all[name] = array(std::move(each.real));
      if (each.kind == Kind::truth) all[name] = each.truth->array();
    }
    all["addresses"] = addresses_.texts();
    return all;
  }

 private:
  struct Wanted {
    std::size_t index;
    Kind kind;
    std::vector<std::int64_t> whole{};
    std::vector<double> real{};
    std::unique_ptr<Flags> truth{};
  };

  static bool wants(const std::vector<std::string>& names, const char* name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  void make() {
    const std::size_t count = 2 * rows_.size();
    for (Wanted& each : wanted_) {
      if (each.kind == Kind::whole) each.whole.reserve(count);
      if (each.kind == Kind::real) each.real.reserve(count);
      if (each.kind == Kind::truth) each.truth = std::make_unique<Flags>(count);
    }
    FlowRows::Rows rows;
    for (std::size_t connection = 0; connection < rows_.size(); ++connection) {
      rows_.read(connection, rows);
      for (unsigned direction = 0; direction < 2; ++direction) {
        const Endpoints ends = direction == 0 ? rows.endpoints : rows.endpoints.turned();
        connection_.push_back(static_cast<std::int64_t>(connection));
        direction_.push_back(direction);
        protocol_.push_back(ends.protocol());
        source_.push_back(addresses_.number(ends.source, ends.version()));
        source_port_.push_back(ntohs(ends.source_port()));
        destination_.push_back(addresses_.number(ends.destination, ends.version()));
        destination_port_.push_back(ntohs(ends.destination_port()));
        for (Wanted& each : wanted_) {
          const std::int64_t value = rows.values[direction][each.index];
          if (each.kind == Kind::whole) each.whole.push_back(value);
          if (each.kind == Kind::real) each.real.push_back(std::bit_cast<double>(value));
          if (each.kind == Kind::truth) each.truth->push_back(value != 0);
        }
      }
    }
  }

  const FlowRows& rows_;
  std::vector<Wanted> wanted_;
  Addresses addresses_;
  std::vector<std::int64_t> connection_;
  std::vector<std::int64_t> direction_;
  std::vector<std::uint8_t> protocol_;
  std::vector<std::int32_t> source_;
  std::vector<std::int64_t> source_port_;
  std::vector<std::int32_t> destination_;
  std::vector<std::int64_t> destination_port_;
};

/// What is kept of connections that left.
struct Kept {
  struct Interval {
    std::int64_t flow;
    SeriesRow row;
  };
  FlowRows rows;
  std::vector<Interval> series;

  void add(const Connection& connection) {
    rows.add(connection);
    for (unsigned direction = 0; direction < 2; ++direction) {
      if (!connection.directions[direction]) continue;
      for (const SeriesRow& each : connection.directions[direction]->series) {
        series.push_back({2 * std::int64_t{connection.number} + direction, each});
      }
    }
  }
};

nb::dict series_columns(std::vector<Kept::Interval> rows, std::int64_t origin_ns,
                        std::int64_t interval_ns) {
  using Row = Kept::Interval;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.flow < b.flow; });
  Table<Row> table(std::move(rows));
  table.add("flow", [](const Row& row) { return row.flow; });
  table.add("start_ns", [=](const Row& row) { return origin_ns + row.row.index * interval_ns; });
  table.add("payload_bytes", [](const Row& row) { return row.row.payload_bytes; });
  table.add("first_time_bytes", [](const Row& row) { return row.row.first_time_bytes; });
  table.add("retransmitted_packets", [](const Row& row) { return row.row.retransmitted_packets; });
  table.add("in_flight_max_bytes", [](const Row& row) {
    return number_or_nan(row.row.in_flight_most >= 0, row.row.in_flight_most);
  });
  table.add("rtt_mean_ns", [](const Row& row) {
    return row.row.rtt_count == 0 ? nan : row.row.rtt_sum / static_cast<double>(row.row.rtt_count);
  });
  table.add("rtt_max_ns",
            [](const Row& row) { return number_or_nan(row.row.rtt_count != 0, row.row.rtt_most); });
  table.add("window_bytes",
            [](const Row& row) { return number_or_nan(row.row.window >= 0, row.row.window); });
  return table.columns();
}

void let_signals_in() {
  const nb::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// Packets by what they are, most first.
nb::dict contents(const Totals& totals) {
  std::map<std::string, std::int64_t> counts;  // several numbers may have one name
  if (totals.tcp != 0) counts["TCP"] = totals.tcp;
  if (totals.udp != 0) counts["UDP"] = totals.udp;
  for (const auto& [what, count] : totals.others) counts[name_of(what)] += count;
  std::vector<std::pair<std::string, std::int64_t>> ordered(counts.begin(), counts.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  nb::dict all;
  for (const auto& [name, count] : ordered) all[name.c_str()] = count;
  return all;
}

/// What a scan is asked for.
struct Asked {
  Options options;
  bool tunnels = false;
};
Asked asked(std::optional<std::int64_t> start_ns, std::optional<std::int64_t> end_ns, bool relative,
            bool tunnels) {
  Asked all;
  if (start_ns) all.options.start_ns = *start_ns;
  if (end_ns) all.options.end_ns = *end_ns;
  all.options.relative = relative;
  all.tunnels = tunnels;
  return all;
}

/// What a scan found.
struct Found {
  Kept kept;
  Totals totals;
  Options measured;
  std::int64_t origin_ns = 0;
  std::string damage;
  std::int64_t frames_of_several = 0;
};

/// Without the interpreter.
void scan_file(const std::string& name, const Asked& all, Found& found) {
  Engine engine(all.options, [&](const Connection& each) { found.kept.add(each); });
  CaptureFile file(name);
  Decoder decoder(all.tunnels);
  while (scan_some(file, decoder, engine, found.totals, packets_between_signals)) let_signals_in();
  engine.finish();
  found.damage = file.damage();
  found.frames_of_several = decoder.frames_of_several();
  found.measured = engine.options();
  found.origin_ns = engine.origin_ns();
}

nb::dict totals_of(const Found& found) {
  const Totals& totals = found.totals;
  nb::dict result;
  result["packets"] = totals.packets;
  result["bytes"] = totals.bytes;
  result["first_ns"] = totals.packets == 0 ? 0 : totals.first_ns;
  result["last_ns"] = totals.packets == 0 ? 0 : totals.last_ns;
  result["packets_back"] = totals.packets_back;
  result["max_back_ns"] = totals.max_back_ns;
  result["packets_without_time"] = totals.packets_without_time;
  const auto bound = [](std::int64_t time_ns, std::int64_t open) -> nb::object {
    return time_ns == open ? nb::none() : nb::cast(time_ns);
  };
  result["start_ns"] = bound(found.measured.start_ns, Options{}.start_ns);
  result["end_ns"] = bound(found.measured.end_ns, Options{}.end_ns);
  result["damage"] = found.damage;
  result["frames_of_several"] = found.frames_of_several;
  nb::dict unused;
  for (std::size_t reason = 1; reason < unused_reasons; ++reason) {
    if (totals.unused[reason] != 0) unused[unused_names[reason]] = totals.unused[reason];
  }
  result["unused"] = unused;
  result["contents"] = contents(totals);
  return result;
}

nb::dict scan(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, std::int64_t interval_ns, bool relative,
              const std::vector<std::string>& columns, bool tunnels) {
  Asked all = asked(start_ns, end_ns, relative, tunnels);
  all.options.interval_ns = interval_ns;
  Found found;
  std::optional<FlowArrays> table;
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    scan_file(name, all, found);
    table.emplace(found.kept.rows, columns);
  }
  nb::dict result = totals_of(found);
  result["flows"] = table->columns(columns);
  if (interval_ns != 0) {
    result["series"] = series_columns(std::move(found.kept.series), found.origin_ns, interval_ns);
  }
  return result;
}

/// One direction as a dict; what is not known is None.
nb::dict row_of(const FlowRows::Rows& rows, std::size_t connection, unsigned direction) {
  constexpr std::array places = {"", "source", "between", "destination"};
  const Endpoints ends = direction == 0 ? rows.endpoints : rows.endpoints.turned();
  nb::dict row;
  row["connection"] = connection;
  row["direction"] = direction;
  row["protocol"] = ends.protocol() == protocol_tcp ? "tcp" : "udp";
  row["source"] = address_text(ends.source, ends.version());
  row["source_port"] = ntohs(ends.source_port());
  row["destination"] = address_text(ends.destination, ends.version());
  row["destination_port"] = ntohs(ends.destination_port());
  const auto columns = flow_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::int64_t value = rows.values[direction][i];
    const char* name = columns[i].name;
    if (columns[i].kind == Kind::truth) {
      row[name] = value != 0;
    } else if (columns[i].kind == Kind::whole) {
      row[name] = value;
    } else {
      const auto real = std::bit_cast<double>(value);
      row[name] = std::isnan(real) ? nb::none() : nb::cast(real);
    }
  }
  row["captured_at"] = places[static_cast<std::size_t>(nb::cast<int>(row["captured_at"]))];
  return row;
}

/// The connections with most in a column of whole numbers, of both directions the larger.
nb::dict rows(const nb::bytes& path, std::optional<std::int64_t> start_ns,
              std::optional<std::int64_t> end_ns, bool relative, bool tunnels,
              const std::string& by, std::size_t limit) {
  Found found;
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  FlowRows::Rows rows;
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    scan_file(name, asked(start_ns, end_ns, relative, tunnels), found);
    const auto columns = flow_columns();
    const auto column =
        static_cast<std::size_t>(std::find_if(columns.begin(), columns.end(),
                                              [&](const Column& each) { return by == each.name; }) -
                                 columns.begin());
    if (column == columns.size() || columns[column].kind != Kind::whole) {
      throw std::invalid_argument("no column of whole numbers: " + by);
    }
    for (std::size_t each = 0; each < found.kept.rows.size(); ++each) {
      found.kept.rows.read(each, rows);
      order.emplace_back(-std::max(rows.values[0][column], rows.values[1][column]), each);
    }
    limit = std::min(limit, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(limit),
                      order.end());
  }
  nb::list all;
  for (std::size_t i = 0; i < limit; ++i) {
    found.kept.rows.read(order[i].second, rows);
    for (unsigned direction = 0; direction < 2; ++direction) {
      all.append(row_of(rows, order[i].second, direction));
    }
  }
  nb::dict result = totals_of(found);
  result["connections"] = order.size();
  result["rows"] = all;
  return result;
}

/// What one direction of a connection did over time.
nb::dict trace(const nb::bytes& path, std::uint32_t connection, unsigned direction, bool tunnels) {
  Tracer tracer(connection, direction);
  {
    const std::string name(path.c_str(), path.size());
    const nb::gil_scoped_release free;
    CaptureFile file(name);
    Decoder decoder(tunnels);
    Engine engine{Options{}};
    Record record;
    Packet packet;
    for (std::int64_t passed = 1; file.next(record); ++passed) {
      if (passed % packets_between_signals == 0) let_signals_in();
      if (decoder.decode(record, packet) == Unused::none) tracer.add(packet, engine.add(packet));
    }
  }
  Trace& all = tracer.trace();
  nb::dict segments;
  segments["time_ns"] = array(std::move(all.segments.time_ns));
  segments["begin"] = array(std::move(all.segments.begin));
  segments["end"] = array(std::move(all.segments.end));
  segments["kind"] = array(std::move(all.segments.kind));
  segments["flags"] = array(std::move(all.segments.flags));
  nb::dict acknowledgements;
  acknowledgements["time_ns"] = array(std::move(all.acknowledgements.time_ns));
  acknowledgements["number"] = array(std::move(all.acknowledgements.number));
  acknowledgements["window_end"] = array(std::move(all.acknowledgements.window_end));
  acknowledgements["duplicate"] = array(std::move(all.acknowledgements.duplicate));
  nb::dict sacks;
  sacks["time_ns"] = array(std::move(all.sacks.time_ns));
  sacks["begin"] = array(std::move(all.sacks.begin));
  sacks["end"] = array(std::move(all.sacks.end));
  const auto samples = [](Trace::Samples& from, const char* value) {
    nb::dict columns;
    columns["time_ns"] = array(std::move(from.time_ns));
    columns[value] = array(std::move(from.value));
    return columns;
  };
  nb::dict result;
  result["segments"] = segments;
  result["acknowledgements"] = acknowledgements;
  result["sacks"] = sacks;
  result["rtt_sequence"] = samples(all.rtt_sequence, "rtt_ns");
  result["rtt_timestamps"] = samples(all.rtt_timestamps, "rtt_ns");
  result["in_flight"] = samples(all.in_flight, "bytes");
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
        } else if (decoder_.decode(record, packet) == Unused::none) {
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
      identity.reserve(rows);
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
      identity.push_back(packet.identity());
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
      all["identity"] = array(std::move(identity));
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
    std::vector<std::uint32_t> identity;
    Flags retransmission;
    std::vector<std::int32_t> new_bytes;
  };

  std::size_t rows_;
  CaptureFile file_;
  Decoder decoder_;
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
  table.add("sent_connection", [](const Row& row) { return std::int64_t{row.of->numbers[0]}; });
  table.add("received_connection", [](const Row& row) { return std::int64_t{row.of->numbers[1]}; });
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
             nb::arg("interval_ns"), nb::arg("relative"), nb::arg("columns"), nb::arg("tunnels"));
  module.def("rows", &rows, nb::arg("path"), nb::arg("start_ns").none(), nb::arg("end_ns").none(),
             nb::arg("relative"), nb::arg("tunnels"), nb::arg("by"), nb::arg("limit"));
  module.def("trace", &trace, nb::arg("path"), nb::arg("connection"), nb::arg("direction"),
             nb::arg("tunnels"));
  module.def("match", &match, nb::arg("sent"), nb::arg("received"), nb::arg("start_ns").none(),
             nb::arg("end_ns").none(), nb::arg("complete"), nb::arg("sent_clock"),
             nb::arg("received_clock"));
  nb::class_<PacketReader>(module, "PacketReader")
      .def(nb::init<const nb::bytes&, std::size_t>(), nb::arg("path"), nb::arg("rows"))
      .def("next", &PacketReader::next);
}
