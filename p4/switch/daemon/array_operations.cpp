// SPDX-License-Identifier: Apache-2.0
//
// Operations on registers, counters and meters.
#include "switch/daemon/operation_table.hpp"
#include "switch/daemon/operation_values.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

std::vector<MeterRate> read_rates(ObjectReader& reader) {
  std::vector<MeterRate> rates;
  const json& list = reader.array("rates");
  for (std::size_t i = 0; i < list.size(); ++i) {
    ObjectReader rate(list[i], reader.at("rates") / i);
    rate.only({"per_us", "burst"});
    rates.push_back({rate.number("per_us", {0, 1e9}), rate.whole("burst")});
  }
  return rates;
}

json register_read(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  json values = json::array();
  if (reader.has("index")) {
    const std::uint64_t index = reader.whole("index");
    values.push_back(number_to_json(control.register_read(name, index)));
  } else {
    for (const Bytes& value : control.register_read_all(name)) {
      values.push_back(number_to_json(value));
    }
  }
  return {{"ok", true}, {"values", std::move(values)}};
}

json register_write(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  const std::uint64_t index = reader.whole("index");
  const Bytes value = read_number(reader.any("value"), [&] { return reader.at("value"); });
  control.register_write(name, index, value);
  return {{"ok", true}};
}

json register_reset(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("register");
  control.register_reset(name);
  return {{"ok", true}};
}

json counter_read(Control& control, ObjectReader& reader) {
  Count count;
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority"});
    const std::string table = reader.text("table");
    count = control.direct_counter_read(table, read_entry(control, table, reader));
  } else {
    reader.only({"op", "counter", "index"});
    const std::string name = reader.text("counter");
    if (!reader.has("index")) {
      json counts = json::array();
      for (const Count& one : control.counter_read_all(name)) {
        counts.push_back({one.packets, one.bytes});
      }
      return {{"ok", true}, {"counts", std::move(counts)}};
    }
    count = control.counter_read(name, reader.whole("index"));
  }
  return {{"ok", true}, {"packets", count.packets}, {"bytes", count.bytes}};
}

json counter_write(Control& control, ObjectReader& reader) {
  const Count count = {reader.whole("packets"), reader.whole("bytes")};
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority", "packets", "bytes"});
    const std::string table = reader.text("table");
    control.direct_counter_write(table, read_entry(control, table, reader), count);
  } else {
    reader.only({"op", "counter", "index", "packets", "bytes"});
    const std::string name = reader.text("counter");
    control.counter_write(name, reader.whole("index"), count);
  }
  return {{"ok", true}};
}

json counter_reset(Control& control, ObjectReader& reader) {
  const std::string name = reader.text("counter");
  control.counter_reset(name);
  return {{"ok", true}};
}

json meter_rates(Control& control, ObjectReader& reader) {
  const std::vector<MeterRate> rates = read_rates(reader);
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority", "rates"});
    const std::string table = reader.text("table");
    control.direct_meter_rates(table, read_entry(control, table, reader), rates);
    return {{"ok", true}};
  }
  reader.only({"op", "meter", "index", "rates"});
  const std::string name = reader.text("meter");
  if (reader.has("index")) {
    const std::uint64_t index = reader.whole("index");
    control.meter_rates(name, index, rates);
  } else {
    control.meter_rates_all(name, rates);
  }
  return {{"ok", true}};
}

json meter_read(Control& control, ObjectReader& reader) {
  if (reader.has("table")) {
    reader.only({"op", "table", "handle", "match", "priority"});
    const std::string table = reader.text("table");
    const Handle handle = read_entry(control, table, reader);
    return {{"ok", true}, {"rates", rates_to_json(control.direct_meter_read(table, handle))}};
  }
  reader.only({"op", "meter", "index"});
  const std::string name = reader.text("meter");
  if (reader.has("index")) {
    return {{"ok", true},
            {"rates", rates_to_json(control.meter_read(name, reader.whole("index")))}};
  }
  json cells = json::array();
  for (const auto& rates : control.meter_read_all(name)) cells.push_back(rates_to_json(rates));
  return {{"ok", true}, {"cells", std::move(cells)}};
}

}  // namespace

OperationTable array_operations() {
  return {
      {"register_read", {register_read, {"op", "register", "index"}}},
      {"register_write", {register_write, {"op", "register", "index", "value"}}},
      {"register_reset", {register_reset, {"op", "register"}}},
      {"counter_read",
       {counter_read, {"op", "table", "handle", "match", "priority", "counter", "index"}}},
      {"counter_write",
       {counter_write,
        {"op", "table", "handle", "match", "priority", "counter", "index", "packets", "bytes"}}},
      {"counter_reset", {counter_reset, {"op", "counter"}}},
      {"meter_rates",
       {meter_rates, {"op", "table", "handle", "match", "priority", "meter", "index", "rates"}}},
      {"meter_read",
       {meter_read, {"op", "table", "handle", "match", "priority", "meter", "index"}}}};
}

}  // namespace nagi::p4
