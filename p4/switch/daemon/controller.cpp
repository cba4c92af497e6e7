// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/controller.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "control/json_source.hpp"
#include "io/input_error.hpp"
#include "program/control.hpp"
#include "switch/daemon/config.hpp"
#include "switch/daemon/operation_values.hpp"
#include "switch/daemon/operations.hpp"

namespace nagi::p4 {

namespace {

using nlohmann::json;

/// Return whether an operation must be a request of its own, outside batches and files of entries.
bool must_be_alone(const std::string& op) {
  static const std::set<std::string> all = {"batch",        "digests",        "events",
                                            "packet_out",   "pipeline_check", "pipeline_read",
                                            "pipeline_set", "show",           "stop"};
  return all.contains(op);
}

/// Load the program that a request contains.
Program load_requested_program(const ObjectReader& reader) {
  const std::string name = reader.has("name") ? reader.text("name") : "the program";
  const json& text = reader.any("program");
  if (!text.is_string()) {
    throw ConfigError(reader.at("program"), "not a string",
                      "give the JSON that p4c-bm2-ss made, as a string");
  }
  return load_program(text.get_ref<const std::string&>(), name);
}

}  // namespace

Controller::Batch::Batch(Controller& controller) : controller_(controller) {
  controller_.switch_.machine().control().begin();
}

Controller::Batch::~Batch() {
  if (!committed_) controller_.switch_.machine().control().roll_back();
}

json Controller::Batch::perform(const json& operation, const json::json_pointer& where) {
  ObjectReader reader(operation, where);
  const std::string op = reader.text("op");
  if (must_be_alone(op)) {
    throw ConfigError(reader.at("op"), op + " is not possible in a batch or a file of entries",
                      "send it as a request of its own");
  }
  return controller_.perform_one(reader, op, changes_);
}

void Controller::Batch::commit() {
  controller_.switch_.machine().control().commit();
  committed_ = true;
  controller_.change_queues(changes_);
}

json Controller::answer(const json& request) {
  ObjectReader reader(request, json::json_pointer());
  const std::string op = reader.text("op");
  if (op == "stop") {
    reader.only({"op"});
    stopped_ = true;
    return {{"ok", true}};
  }
  driver_.bring_up_to_date();
  if (op == "batch") return batch(reader);
  if (op == "packet_out") return packet_out(reader);
  if (op == "pipeline_set" || op == "pipeline_check") {
    reader.only({"op", "program", "name"});
    Program program = load_requested_program(reader);
    if (op == "pipeline_set") switch_.replace(std::move(program));
    return {{"ok", true}};
  }
  if (must_be_alone(op)) {
    reader.only({"op"});
    if (op == "digests") return {{"ok", true}, {"digests", driver_.digests()}};
    if (op == "events") return events();
    if (op == "show") return {{"ok", true}, {"account", driver_.account()}};
    return {
        {"ok", true}, {"name", switch_.machine().file()}, {"program", switch_.machine().text()}};
  }
  std::vector<Change> changes;
  json answer = perform_one(reader, op, changes);
  change_queues(changes);
  return answer;
}

json Controller::batch(ObjectReader& reader) {
  reader.only({"op", "operations"});
  const json& operations = reader.array("operations");
  const auto where = reader.at("operations");
  json answers = json::array();
  Batch batch(*this);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    try {
      answers.push_back(batch.perform(operations[i], where / i));
    } catch (const InputError& error) {
      throw InputError("operations." + std::to_string(i) + ": " + error.what(), error.code());
    }
  }
  batch.commit();
  return {{"ok", true}, {"answers", std::move(answers)}};
}

json Controller::packet_out(const ObjectReader& reader) {
  ObjectReader(reader).only({"op", "bytes"});
  switch_.arrive_from_controller(read_packet(reader));
  return {{"ok", true}};
}

json Controller::events() {
  Control& control = switch_.machine().control();
  control.set_time(switch_.now_us());
  json packets = json::array();
  for (const PacketIn& packet : switch_.take_packets_in()) {
    packets.push_back({{"bytes", to_hexadecimal(packet.bytes)},
                       {"at_us", packet.at.time_since_epoch().count() / 1000}});
  }
  json timeouts = json::array();
  for (const Expired& expired : control.expired()) {
    json entry = entry_to_json(expired.entry);
    entry["table"] = expired.table;
    timeouts.push_back(std::move(entry));
  }
  return {{"ok", true},
          {"packets", std::move(packets)},
          {"digests", driver_.digests()},
          {"timeouts", std::move(timeouts)},
          {"lost", switch_.packets_in_lost()}};
}

json Controller::perform_one(ObjectReader& reader, const std::string& op,
                             std::vector<Change>& changes) {
  if (op == "queue_set") return queue_set(reader, changes);
  Control& control = switch_.machine().control();
  control.set_time(switch_.now_us());
  return perform_operation(control, reader, op);
}

json Controller::queue_set(ObjectReader& reader, std::vector<Change>& changes) {
  std::vector<std::string_view> keys = queue_keys();
  keys.insert(keys.end(), {"op", "port"});
  reader.only(keys);
  const Port number = static_cast<Port>(reader.whole("port", 0, max_ports - 1));
  const auto port = switch_.port_index(number);
  if (!port) {
    throw ConfigError(reader.at("port"), "there is no port " + std::to_string(number),
                      "give a port of the configuration");
  }
  // A later change of the same port in a batch starts from the settings of the earlier change.
  const auto earlier = std::ranges::find(changes.rbegin(), changes.rend(), *port, &Change::port);
  Change change{*port, earlier != changes.rend() ? earlier->queue : switch_.queue(*port)};
  read_queue(reader, change.queue);
  changes.push_back(change);
  return {{"ok", true}, {"queue", to_json(change.queue)}};
}

void Controller::change_queues(const std::vector<Change>& changes) {
  if (changes.empty()) return;
  driver_.bring_up_to_date();  // a long batch may have begun some time ago
  for (const Change& change : changes) {
    switch_.change(change.port, change.queue);
    driver_.queue_changed(change.port);
  }
}

void Controller::load(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw InputError(path + ": cannot read it: " + std::strerror(errno) +
                     "; give the path of a file of operations");
  }
  Batch batch(*this);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const runtime::JsonSource source(path, std::move(line), number);
    const std::string location = path + ":" + std::to_string(number) + ": ";
    try {
      batch.perform(source.value(), json::json_pointer());
    } catch (const ConfigError& error) {
      throw source.located(error);
    } catch (const InputError& error) {
      throw InputError(location + error.what());
    }
  }
  batch.commit();
}

}  // namespace nagi::p4
