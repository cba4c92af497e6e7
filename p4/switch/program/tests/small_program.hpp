// SPDX-License-Identifier: Apache-2.0
//
// Programs for tests, in the form that p4c writes: a header `h` is extracted and emitted, and the
// test defines the processing in between. Ingress sends everything to port 1.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/input_error.hpp"
#include "program/control.hpp"
#include "program/machine.hpp"

namespace nagi::p4::test {

using Json = nlohmann::json;

inline const Bytes eight = {1, 2, 3, 4, 5, 6, 7, 8};

inline Json field(const std::string& header, const std::string& name) {
  return {{"type", "field"}, {"value", Json::array({header, name})}};
}
inline Json hex(const std::string& digits) { return {{"type", "hexstr"}, {"value", digits}}; }
inline Json hex(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return hex(std::string(text));
}
inline Json operation(const std::string& op, const Json& left, const Json& right) {
  return {{"type", "expression"}, {"value", {{"op", op}, {"left", left}, {"right", right}}}};
}
/// Wrap an expression as a primitive's parameter.
inline Json wrapped(const Json& expression) {
  return {{"type", "expression"}, {"value", expression}};
}
inline Json named(const std::string& type, const std::string& name) {
  return {{"type", type}, {"value", name}};
}
inline Json parameter(int index) { return {{"type", "runtime_data"}, {"value", index}}; }
inline Json primitive(const std::string& op, const std::vector<Json>& parameters) {
  return {{"op", op},
          {"parameters", parameters},
          {"source_info", {{"filename", "small.p4"}, {"line", 42}, {"column", 1}}}};
}
inline Json assign(const Json& to, const Json& from) { return primitive("assign", {to, from}); }
inline Json key(const std::string& match, const std::string& header, const std::string& name) {
  return {{"match_type", match},
          {"name", name},
          {"target", Json::array({header, name})},
          {"mask", nullptr}};
}

struct FieldSpec {
  std::string name;
  int bits;
  bool is_signed = false;
};

/// The JSON, which a test may change.
class SmallProgram {
 public:
  /// Make a program in which `h` has the fields {"name", bits}, whole bytes together.
  explicit SmallProgram(
      const std::vector<FieldSpec>& fields = {{"a", 8}, {"b", 8}, {"c", 16}, {"d", 32}},
      const std::vector<FieldSpec>& locals = {{"x", 64}}) {
    root["__meta__"] = {{"version", Json::array({2, 23})}, {"compiler", "by hand"}};
    const std::vector<FieldSpec> standard = {{"ingress_port", 9},
                                             {"egress_spec", 9},
                                             {"egress_port", 9},
                                             {"instance_type", 32},
                                             {"packet_length", 32},
                                             {"enq_timestamp", 32},
                                             {"enq_qdepth", 19},
                                             {"deq_timedelta", 32},
                                             {"deq_qdepth", 19},
                                             {"ingress_global_timestamp", 48},
                                             {"egress_global_timestamp", 48},
                                             {"mcast_grp", 16},
                                             {"egress_rid", 16},
                                             {"checksum_error", 1},
                                             {"parser_error", 32},
                                             {"priority", 3}};
    type("standard_t", standard);
    type("h_t", fields);
    type("scalars_t", locals);
    header("standard_metadata", "standard_t", true);
    header("scalars", "scalars_t", true);
    header("h", "h_t", false);
    for (const char* name : {"enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"}) {
      alias(std::string("queueing_metadata.") + name, name);
    }
    for (const char* name : {"ingress_global_timestamp", "egress_global_timestamp", "mcast_grp",
                             "egress_rid", "priority"}) {
      alias(std::string("intrinsic_metadata.") + name, name);
    }
    const std::vector<std::string> errors = {
        "NoError",       "PacketTooShort",       "NoMatch", "StackOutOfBounds", "HeaderTooShort",
        "ParserTimeout", "ParserInvalidArgument"};
    for (std::size_t i = 0; i < errors.size(); ++i) {
      root["errors"].push_back(Json::array({errors[i], i}));
    }
    root["parsers"] = Json::array({{{"name", "parser"}, {"id", 0}, {"init_state", "start"}}});
    state("start", {extract("h")});
    root["deparsers"] =
        Json::array({{{"name", "deparser"}, {"id", 0}, {"order", Json::array({"h"})}}});
    root["actions"] = Json::array();
    root["pipelines"] = Json::array({pipeline("ingress"), pipeline("egress")});
    for (const char* key : {"register_arrays", "counter_arrays", "meter_arrays", "calculations",
                            "checksums", "field_lists", "learn_lists", "header_stacks"}) {
      root[key] = Json::array();
    }
  }

  Json root;

  void type(const std::string& name, const std::vector<FieldSpec>& fields) {
    Json list = Json::array();
    for (const FieldSpec& one : fields) {
      list.push_back(Json::array({one.name, one.bits, one.is_signed}));
    }
    root["header_types"].push_back(
        {{"name", name}, {"id", root["header_types"].size()}, {"fields", list}});
  }
  int header(const std::string& name, const std::string& of, bool metadata) {
    const auto id = static_cast<int>(root["headers"].size());
    root["headers"].push_back(
        {{"name", name}, {"id", id}, {"header_type", of}, {"metadata", metadata}});
    return id;
  }
  void stack(const std::string& name, const std::string& of, int size) {
    Json ids = Json::array();
    for (int i = 0; i < size; ++i) {
      ids.push_back(header(name + "[" + std::to_string(i) + "]", of, false));
      deparse(name + "[" + std::to_string(i) + "]");
    }
    root["header_stacks"].push_back({{"name", name},
                                     {"id", root["header_stacks"].size()},
                                     {"header_type", of},
                                     {"header_ids", ids}});
  }
  void deparse(const std::string& header) { root["deparsers"][0]["order"].push_back(header); }
  void alias(const std::string& name, const std::string& field) {
    root["field_aliases"].push_back(Json::array({name, Json::array({"standard_metadata", field})}));
  }

  static Json extract(const std::string& header) {
    return {{"op", "extract"}, {"parameters", Json::array({named("regular", header)})}};
  }
  static Json extract_next(const std::string& stack) {
    return {{"op", "extract"}, {"parameters", Json::array({named("stack", stack)})}};
  }
  static Json otherwise(const Json& next) {
    return {{"type", "default"}, {"value", nullptr}, {"mask", nullptr}, {"next_state", next}};
  }
  static Json on(const std::string& value, const Json& next, const Json& mask = nullptr) {
    return {{"type", "hexstr"}, {"value", value}, {"mask", mask}, {"next_state", next}};
  }
  /// Replace the parser state with this name, or add it.
  void state(const std::string& name, const std::vector<Json>& ops,
             const std::vector<Json>& key = {},
             const std::vector<Json>& transitions = {otherwise(nullptr)}) {
    Json& states = root["parsers"][0]["parse_states"];
    const Json state = {{"name", name},
                        {"id", states.size()},
                        {"parser_ops", ops},
                        {"transition_key", key},
                        {"transitions", transitions}};
    for (Json& one : states) {
      if (one["name"] == name) {
        one = state;
        return;
      }
    }
    states.push_back(state);
  }

  int action(const std::string& name, const std::vector<Json>& primitives,
             const std::vector<int>& widths = {}) {
    const auto id = static_cast<int>(root["actions"].size());
    Json data = Json::array();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      data.push_back({{"name", "p" + std::to_string(i)}, {"bitwidth", widths[i]}});
    }
    root["actions"].push_back(
        {{"name", name}, {"id", id}, {"runtime_data", data}, {"primitives", primitives}});
    return id;
  }

  /// Add a table after the others of its pipeline; -1: without a default action.
  Json& table(const std::string& pipeline, const std::string& name, const std::string& match,
              const std::vector<Json>& keys, const std::vector<int>& actions, int fallback = -1,
              const Json& data = Json::array(), bool constant = false) {
    Json& of = root["pipelines"][pipeline == "ingress" ? 0 : 1];
    Json names = Json::array();
    Json next = Json::object();
    for (const int action : actions) {
      const auto& called = root["actions"][static_cast<std::size_t>(action)]["name"];
      names.push_back(called);
      next[called.get<std::string>()] = nullptr;
    }
    Json table = {{"name", name},
                  {"id", of["tables"].size()},
                  {"key", keys},
                  {"match_type", match},
                  {"type", "simple"},
                  {"max_size", 1024},
                  {"action_ids", actions},
                  {"actions", names},
                  {"base_default_next", nullptr},
                  {"next_tables", next},
                  {"source_info", {{"filename", "small.p4"}, {"line", 17}}}};
    if (fallback >= 0) {
      table["default_entry"] = {{"action_id", fallback},
                                {"action_const", constant},
                                {"action_data", data},
                                {"action_entry_const", constant}};
    }
    if (of["tables"].empty()) {
      of["init_table"] = name;
    } else {
      Json& last = of["tables"].back();
      last["base_default_next"] = name;
      for (auto& [called, to] : last["next_tables"].items()) to = name;
    }
    of["tables"].push_back(table);
    return of["tables"].back();
  }

  /// Run primitives for every packet.
  void run(const std::string& pipeline, const std::vector<Json>& primitives) {
    const std::string name = "run" + std::to_string(root["actions"].size());
    const int id = action(name, primitives);
    table(pipeline, "tbl_" + name, "exact", {}, {id}, id, Json::array(), true);
  }
  void ingress(const std::vector<Json>& primitives) { run("ingress", primitives); }
  void egress(const std::vector<Json>& primitives) { run("egress", primitives); }
  void forward(std::uint64_t port = 1) {
    ingress({assign(field("standard_metadata", "egress_spec"), hex(port))});
  }

  [[nodiscard]] Program load() const { return load_program(root.dump(), "small.json"); }
  /// Return the error of the loader.
  [[nodiscard]] std::string refusal() const {
    try {
      (void)load();
    } catch (const InputError& error) {
      return error.what();
    }
    return "not refused";
  }

 private:
  static Json pipeline(const std::string& name) {
    return {{"name", name},
            {"id", 0},
            {"init_table", nullptr},
            {"tables", Json::array()},
            {"action_profiles", Json::array()},
            {"conditionals", Json::array()}};
  }
};

struct Sent {
  Port port;
  Bytes bytes;
  bool operator==(const Sent&) const = default;
};
inline void PrintTo(const Sent& sent, std::ostream* out) {
  *out << "port " << sent.port << ": " << testing::PrintToString(sent.bytes);
}

/// A machine with queues that hold no packets.
class Switch {
 public:
  explicit Switch(const SmallProgram& program, Settings settings = {})
      : pool_(4096), machine_(program.load(), pool_, std::move(settings)) {}

  /// Send a packet. Return all resulting packets in order.
  std::vector<Sent> send(const Bytes& bytes, Port port = 3, std::uint64_t now_us = 0,
                         const QueueTimes& times = {}) {
    const io::Slot slot = pool_.take();
    std::copy(bytes.begin(), bytes.end(), pool_.data(slot));
    std::vector<Queued> queued;
    machine_.ingress(port, {slot, 0, static_cast<std::uint32_t>(bytes.size())}, now_us, queued);
    std::vector<Sent> sent;
    std::deque<Queued> waiting;
    for (;;) {
      for (Queued& one : queued) waiting.push_back(std::move(one));
      queued.clear();
      if (waiting.empty()) return sent;
      Queued next = std::move(waiting.front());
      waiting.pop_front();
      const std::size_t size = next.packet->size();
      last_size_ = size;
      const auto frame = machine_.egress(std::move(next.packet), next.port, times, now_us, queued);
      if (!frame) continue;
      const std::uint8_t* from = pool_.data(frame->slot) + frame->offset;
      sent.push_back({next.port, Bytes(from, from + frame->length)});
      pool_.give_back(frame->slot);
    }
  }
  /// Send a packet. Return the bytes of the only resulting packet.
  Bytes one(const Bytes& bytes) {
    const auto sent = send(bytes);
    return sent.size() == 1 ? sent[0].bytes : Bytes{};
  }
  Control& control() { return machine_.control(); }
  Machine& machine() { return machine_; }
  /// The size of the last packet while it was in the queue.
  [[nodiscard]] std::size_t last_size() const { return last_size_; }

 private:
  io::FramePool pool_;
  Machine machine_;
  std::size_t last_size_ = 0;
};

inline Bytes number(std::uint64_t value, std::size_t bytes) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[bytes - 1 - i] = static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) : 0);
  }
  return result;
}

}  // namespace nagi::p4::test
