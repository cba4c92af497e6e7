// SPDX-License-Identifier: Apache-2.0
//
// Loads the whole program, and its arrays, errors, standard fields and deparser.
#include <algorithm>

#include "base/json_text.hpp"
#include "io/input_error.hpp"
#include "program/loader.hpp"
#include "program/state.hpp"

namespace nagi::p4 {

namespace {

// Maximum nesting of the JSON. An expression has several levels of JSON: see Loader::deepest.
constexpr std::size_t max_nesting = 1024;
constexpr std::uint64_t max_array_bytes = 1ULL << 30;
constexpr std::uint64_t max_elements = 1ULL << 32;

}  // namespace

void Loader::name(Names& names, const JsonAt& at, Index index, const char* object_kind) const {
  const JsonAt here = at["name"];
  if (!names.emplace(here.text(), index).second) {
    here.refuse("another " + std::string(object_kind) + " has this name");
  }
}

Index Loader::find(const Names& names, const JsonAt& at, const char* object_kind) const {
  const auto entry = names.find(at.text());
  if (entry == names.end()) at.refuse("no " + std::string(object_kind) + " is called " + at.text());
  return entry->second;
}

std::vector<std::uint64_t> Loader::number(const JsonAt& at, std::string digits,
                                          std::uint32_t bits) {
  if (digits.rfind("0x", 0) == 0) digits.erase(0, 2);
  if (digits.empty() || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    at.refuse("not a hexadecimal number");
  }
  if (digits.size() % 2 != 0) digits.insert(0, "0");
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  auto words = words_of_bytes(bytes, bits);
  if (words.empty()) at.refuse("more than " + std::to_string(bits) + " bits");
  return words;
}

void Loader::take_bytes(const JsonAt& at, std::uint64_t count, std::uint64_t each) {
  bytes_ += count * each;
  if (bytes_ > max_array_bytes) {
    at.refuse("registers, counters and meters of more than 1 GiB", "make them smaller");
  }
}

void Loader::load_arrays() {
  root_.each("register_arrays", [&](const JsonAt& at) {
    RegisterArray array;
    array.name = at["name"].text();
    array.size = at["size"].whole(0, max_elements);
    array.cell.bits = static_cast<std::uint32_t>(at["bitwidth"].whole(1, 64 * max_field_words));
    array.cell.limbs = (array.cell.bits + 63) / 64;
    take_bytes(at, array.size, 8 * array.cell.limbs);
    name(registers_, at, static_cast<Index>(program_->registers.size()), "register");
    program_->registers.push_back(std::move(array));
  });
  root_.each("counter_arrays", [&](const JsonAt& at) {
    CounterArray array;
    array.name = at["name"].text();
    array.is_direct = at.flag("is_direct", false);
    if (!array.is_direct) {
      array.size = at["size"].whole(0, max_elements);
      take_bytes(at, array.size, sizeof(Count));
    }
    name(counters_, at, static_cast<Index>(program_->counters.size()), "counter");
    program_->counters.push_back(std::move(array));
  });
  root_.each("meter_arrays", [&](const JsonAt& at) {
    MeterArray array;
    array.name = at["name"].text();
    const std::string& type = at["type"].text();
    if (type != "bytes" && type != "packets") at.unsupported("meter of type \"" + type + "\"");
    array.bytes = type == "bytes";
    array.rates = static_cast<std::uint32_t>(at["rate_count"].whole(1, 1 << 16));
    if (array.rates > 2) at.unsupported("meter of more than two rates");
    array.is_direct = at.flag("is_direct", false);
    if (array.is_direct) {
      array.result = field(at["result_target"]);
      if (array.result.limbs != 1 || array.result.is_variable || array.result.written == 0) {
        at["result_target"].refuse("not a field of at most 64 bits");
      }
    } else {
      array.size = at["size"].whole(0, max_elements);
      take_bytes(at, array.size, sizeof(MeterCell));
    }
    name(meters_, at, static_cast<Index>(program_->meters.size()), "meter");
    program_->meters.push_back(std::move(array));
  });
}

void Loader::load_errors() {
  std::unordered_map<std::string, std::uint64_t> values;
  std::uint64_t next = 0;
  root_.each("errors", [&](const JsonAt& at) {
    const std::uint64_t value = at.element(1).whole(0, 0x7ffffffe);
    values.emplace(at.element(0).text(), value);
    next = std::max(next, value + 1);
  });
  const auto value = [&](const char* name) {
    const auto entry = values.find(name);
    return entry != values.end() ? entry->second : next++;
  };
  Errors& errors = program_->errors;
  errors.none = value("NoError");
  errors.too_short = value("PacketTooShort");
  errors.no_match = value("NoMatch");
  errors.stack_bounds = value("StackOutOfBounds");
  errors.header_too_short = value("HeaderTooShort");
  errors.timeout = value("ParserTimeout");
  errors.invalid_argument = value("ParserInvalidArgument");
}

void Loader::load_standard_fields() {
  std::unordered_map<std::string, Field> aliases;
  root_.each("field_aliases", [&](const JsonAt& at) {
    aliases.insert_or_assign(at.element(0).text(), field(at.element(1)));
  });
  const auto standard = [&](const char* header, const char* member, bool needed = false) {
    const std::string full = std::string(header) + "." + member;
    Field field;
    const auto alias = aliases.find(full);
    const auto header_entry = headers_.find(header);
    if (alias != aliases.end()) {
      field = alias->second;
    } else if (header_entry != headers_.end()) {
      const Header& real = program_->headers[header_entry->second];
      const HeaderType& type = program_->types[real.type];
      const auto at = std::find(type.names.begin(), type.names.end(), member);
      if (at != type.names.end()) {
        field = at_base(type.fields[static_cast<std::size_t>(at - type.names.begin())], real.base);
      }
    }
    if (needed && field.bits == 0) {
      root_.refuse("has no field " + full, "compile it for the architecture v1model");
    }
    if (field.is_variable || field.limbs > 1 || (field.bits != 0 && field.written == 0)) {
      root_.refuse(full + " is not a number");
    }
    return field;
  };
  StandardFields& fields = program_->standard;
  fields.ingress_port = standard("standard_metadata", "ingress_port", true);
  fields.egress_spec = standard("standard_metadata", "egress_spec", true);
  fields.egress_port = standard("standard_metadata", "egress_port", true);
  fields.instance_type = standard("standard_metadata", "instance_type", true);
  fields.packet_length = standard("standard_metadata", "packet_length", true);
  fields.checksum_error = standard("standard_metadata", "checksum_error");
  fields.parser_error = standard("standard_metadata", "parser_error");
  fields.enqueued = standard("queueing_metadata", "enq_timestamp");
  fields.enqueue_depth = standard("queueing_metadata", "enq_qdepth");
  fields.queue_time = standard("queueing_metadata", "deq_timedelta");
  fields.dequeue_depth = standard("queueing_metadata", "deq_qdepth");
  fields.queue_id = standard("queueing_metadata", "qid");
  fields.ingress_time = standard("intrinsic_metadata", "ingress_global_timestamp");
  fields.egress_time = standard("intrinsic_metadata", "egress_global_timestamp");
  fields.multicast_group = standard("intrinsic_metadata", "mcast_grp");
  fields.egress_rid = standard("intrinsic_metadata", "egress_rid");
  fields.priority = standard("intrinsic_metadata", "priority");
}

void Loader::load_deparser() {
  const JsonAt deparsers = root_["deparsers"];
  if (deparsers.size() != 1) deparsers.unsupported("no deparser, or more than one");
  const JsonAt deparser = deparsers.element(0);
  deparser["order"].each([&](const JsonAt& at) {
    const Index header = find(headers_, at, "header");
    if (program_->headers[header].is_metadata) at.refuse("metadata is sent");
    const HeaderType& type = program_->types[program_->headers[header].type];
    EmittedHeader emitted{header, program_->headers[header].base, type.bits / 8, none};
    if (type.variable != none) emitted.length = emitted.base + type.fields[type.variable].word;
    program_->deparser.push_back(emitted);
  });
  if (!deparser.has("primitives") || deparser["primitives"].size() == 0) return;
  Action action;
  action.name = "of the deparser";
  deparser["primitives"].each([&](const JsonAt& at) {
    action.steps.push_back(primitive(at, action));
    const Do code = action.steps.back().code;
    if (code == Do::jump || code == Do::jump_if_zero) at.refuse("a jump in the deparser");
  });
  program_->deparser_action = static_cast<Index>(program_->actions.size());
  program_->actions.push_back(std::move(action));
}

std::unique_ptr<Compiled> Loader::load() {
  if (!root_.is_object()) root_.refuse("not an object");
  if (root_.has("__meta__") && root_["__meta__"].has("version")) {
    const JsonAt version = root_["__meta__"]["version"];
    if (version.element(0).whole(0, 1000) != 2) {
      version.refuse("not version 2 of the format", "compile it with a p4c that writes version 2");
    }
  }
  root_.each("extern_instances", [](const JsonAt& at) {
    at.unsupported("extern " + (at.has("type") ? at["type"].text() : std::string()));
  });
  load_header_types();
  load_headers();
  load_stacks();
  load_unions();
  load_errors();
  load_standard_fields();
  load_arrays();
  load_calculations();
  load_checksums();
  load_lists();
  load_value_sets();
  load_actions();
  load_parser();
  load_deparser();
  load_pipelines();
  return std::move(program_);
}

Program load_program(const std::string& text, const std::string& file) {
  nlohmann::json root;
  try {
    root = parse_json(text, max_nesting);
  } catch (const JsonTextError& error) {
    throw InputError(file + ":" + std::to_string(error.line()) + ": " + error.what() +
                     ", or compile the program again with p4c");
  }
  auto compiled = Loader(root, file).load();
  compiled->file = file;
  compiled->text = text;
  return Program(std::move(compiled));
}

}  // namespace nagi::p4
