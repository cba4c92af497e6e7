// SPDX-License-Identifier: Apache-2.0
//
// What a program declares: headers, arrays, calculations, lists.
#include <algorithm>

#include "base/json_text.hpp"
#include "io/input_error.hpp"
#include "program/loader.hpp"
#include "program/state.hpp"

namespace nagi::p4 {

namespace {

constexpr std::size_t max_nesting = 1024;  // Loader::deepest expressions of some levels each
constexpr std::uint64_t max_array_bytes = 1ULL << 30;
constexpr std::uint32_t max_words = 1 << 16;  // of one packet's fields
constexpr std::uint64_t max_elements = 1ULL << 32;

/// How a header's fields come out of 8 bytes each, or nothing, if they do not.
std::vector<Pick> picks_of(const HeaderType& type) {
  const std::uint32_t bytes = type.bits / 8;
  if (type.variable != none || bytes < 8) return {};
  std::vector<Pick> picks;
  std::uint32_t at = 0;
  for (const Field& field : type.fields) {
    const std::uint32_t first = std::min(at / 8, bytes - 8);
    const std::uint32_t end = at - 8 * first + field.bits;
    if (end > 64) return {};
    picks.push_back({field.word, first, 64 - end, field.mask()});
    at += field.bits;
  }
  return picks;
}

std::vector<Chunk> chunks_of(const HeaderType& type) {
  if (type.variable != none) return {};
  std::vector<Chunk> chunks((type.bits + 63) / 64);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].bytes = std::min<std::uint32_t>(8, type.bits / 8 - 8 * static_cast<std::uint32_t>(i));
  }
  std::uint32_t at = 0;
  for (const Field& field : type.fields) {
    std::uint32_t bits = field.bits % 64 == 0 ? 64 : field.bits % 64;  // of the highest word
    for (std::uint32_t limb = field.limbs; limb-- > 0; bits = 64) {
      const Index word = field.word + limb;
      const std::uint32_t end = at % 64 + bits;
      if (end <= 64) {
        chunks[at / 64].places.push_back({word, static_cast<std::uint8_t>(64 - end), 0});
      } else {
        chunks[at / 64].places.push_back({word, 0, static_cast<std::uint8_t>(end - 64)});
        chunks[at / 64 + 1].places.push_back({word, static_cast<std::uint8_t>(128 - end), 0});
      }
      at += bits;
    }
  }
  return chunks;
}

}  // namespace

void Loader::name(Names& names, const JsonAt& at, Index index, const char* what) const {
  const JsonAt here = at["name"];
  if (!names.emplace(here.text(), index).second) {
    here.refuse("another " + std::string(what) + " has this name");
  }
}

Index Loader::find(const Names& names, const JsonAt& at, const char* what) const {
  const auto found = names.find(at.text());
  if (found == names.end()) at.refuse("no " + std::string(what) + " is called " + at.text());
  return found->second;
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

void Loader::load_header_types() {
  root_["header_types"].each([&](const JsonAt& at) {
    HeaderType type;
    type.name = at["name"].text();
    type.words = first_field_word;
    std::uint64_t maximum = 0;
    at["fields"].each([&](const JsonAt& one) {
      const std::size_t parts = one.size();
      Field field;
      type.names.push_back(one.element(0).text());
      field.written = written_word;
      field.word = type.words;
      if (parts > 3 && one.element(3).flag()) one.unsupported("saturating field");
      field.is_signed = parts > 2 && one.element(2).flag();
      if (one.element(1).is_text()) {
        if (one.element(1).text() != "*") one.refuse("not a width");
        if (type.variable != none) one.refuse("a second field of variable length");
        if (type.bits % 8 != 0) {
          one.unsupported("field of variable length that does not begin with a byte, " +
                          type.names.back() + " of header type " + type.name);
        }
        if (at.has("length_exp")) {
          at.unsupported("header whose type says how long its field of variable length is");
        }
        field.is_variable = true;
        maximum = at["max_length"].whole(0, 65535);
        type.variable = static_cast<Index>(type.fields.size());
      } else {
        const std::uint64_t bits = one.element(1).whole(0, 1 << 30);
        if (bits == 0 || bits > 64 * max_field_words) {
          one.unsupported("field of " + std::to_string(bits) + " bits");
        }
        field.bits = static_cast<std::uint32_t>(bits);
        field.limbs = (field.bits + 63) / 64;
        type.words += field.limbs;
        type.bits += field.bits;
      }
      type.fields.push_back(field);
      if (type.words > max_words) at.refuse("too many fields");
    });
    type.max_bytes = type.bits / 8;
    if (type.variable != none) {
      if (8 * maximum < type.bits) at["max_length"].refuse("less than the other fields take");
      Field& field = type.fields[type.variable];
      field.word = type.words;  // after the others
      field.bits = static_cast<std::uint32_t>(8 * maximum - type.bits) / 8 * 8;
      field.limbs = 1 + (field.bits + 63) / 64;
      type.words += field.limbs;
      type.max_bytes = static_cast<std::uint32_t>(maximum);
    }
    if (type.bits % 8 == 0) {
      type.picks = picks_of(type);
      type.chunks = chunks_of(type);
    }
    name(types_, at, static_cast<Index>(program_->types.size()), "header type");
    program_->types.push_back(std::move(type));
  });
}

void Loader::load_headers() {
  // p4c writes a variable of a header union's type as if it were a header.
  std::set<std::string> union_types;
  root_.each("header_union_types",
             [&](const JsonAt& at) { union_types.insert(at["name"].text()); });
  root_["headers"].each([&](const JsonAt& at) {
    Header header;
    header.name = at["name"].text();
    if (union_types.contains(at["header_type"].text())) {
      at.unsupported("variable " + header.name + " of the header union type " +
                     at["header_type"].text());
    }
    header.type = find(types_, at["header_type"], "header type");
    header.is_metadata = at["metadata"].flag();
    header.base = program_->words;
    const HeaderType& type = program_->types[header.type];
    if (!header.is_metadata && type.bits % 8 != 0) {
      at.refuse("a header of " + std::to_string(type.bits) + " bits: not whole bytes");
    }
    program_->words += type.words;
    if (program_->words > max_words) at.refuse("too many headers");
    const auto index = static_cast<Index>(program_->headers.size());
    name(headers_, at, index, "header");
    if (!header_ids_.emplace(at["id"].whole(0, 0x7fffffff), index).second) {
      at["id"].refuse("another header has this id");
    }
    if (header.is_metadata && type.words > first_field_word) {
      program_->metadata.emplace_back(header.base + first_field_word,
                                      type.words - first_field_word);
    }
    program_->headers.push_back(std::move(header));
  });
}

void Loader::load_stacks() {
  root_.each("header_stacks", [&](const JsonAt& at) {
    Stack stack;
    stack.name = at["name"].text();
    stack.type = find(types_, at["header_type"], "header type");
    stack.next = program_->words++;
    at["header_ids"].each([&](const JsonAt& one) {
      const auto found = header_ids_.find(one.whole(0, 0x7fffffff));
      if (found == header_ids_.end()) one.refuse("no header has this id");
      if (program_->headers[found->second].type != stack.type) {
        one.refuse("a header of another type than the stack's");
      }
      if (program_->headers[found->second].is_metadata) {
        // Local stacks' elements are marked so; they have a validity all the same.
        program_->headers[found->second].is_metadata = false;
      }
      if (std::find(stack.headers.begin(), stack.headers.end(), found->second) !=
          stack.headers.end()) {
        one.refuse("a header that is in the stack already");
      }
      stack.headers.push_back(found->second);
    });
    if (stack.headers.empty()) at["header_ids"].refuse("a stack without headers");
    name(stacks_, at, static_cast<Index>(program_->stacks.size()), "header stack");
    program_->stacks.push_back(std::move(stack));
  });
}

void Loader::load_unions() {
  Names types;
  std::vector<Names> members;  // by type, with their places
  root_.each("header_union_types", [&](const JsonAt& at) {
    name(types, at, static_cast<Index>(members.size()), "header union type");
    Names places;
    at["headers"].each([&](const JsonAt& one) {
      if (!places.emplace(one.element(0).text(), static_cast<Index>(places.size())).second) {
        one.refuse("a member of this name is there already");
      }
    });
    if (places.empty()) at["headers"].refuse("a union without headers");
    members.push_back(std::move(places));
  });
  std::unordered_map<std::uint64_t, Index> ids;
  root_.each("header_unions", [&](const JsonAt& at) {
    Union one;
    one.name = at["name"].text();
    one.type = find(types, at["union_type"], "header union type");
    const auto index = static_cast<Index>(program_->unions.size());
    at["header_ids"].each([&](const JsonAt& id) {
      const auto found = header_ids_.find(id.whole(0, 0x7fffffff));
      if (found == header_ids_.end()) id.refuse("no header has this id");
      Header& header = program_->headers[found->second];
      if (header.of_union != none || header.is_metadata) id.refuse("a header that is no member");
      header.of_union = index;
      one.headers.push_back(found->second);
    });
    if (one.headers.size() != members[one.type].size()) {
      at["header_ids"].refuse("not as many headers as the union has members");
    }
    if (!ids.emplace(at["id"].whole(0, 0x7fffffff), index).second) {
      at["id"].refuse("another header union has this id");
    }
    for (const Union& other : program_->unions) {
      if (other.type != one.type) continue;
      for (std::size_t i = 0; i < one.headers.size(); ++i) {
        if (program_->headers[other.headers[i]].type != program_->headers[one.headers[i]].type) {
          at["header_ids"].refuse("headers of other types than another union of this type has");
        }
      }
    }
    name(unions_, at, index, "header union");
    program_->unions.push_back(std::move(one));
  });
  root_.each("header_union_stacks", [&](const JsonAt& at) {
    Stack stack;
    stack.name = at["name"].text();
    stack.type = find(types, at["union_type"], "header union type");
    stack.width = static_cast<std::uint32_t>(members[stack.type].size());
    stack.next = program_->words++;
    at["header_union_ids"].each([&](const JsonAt& id) {
      const auto found = ids.find(id.whole(0, 0x7fffffff));
      if (found == ids.end()) id.refuse("no header union has this id");
      const Union& one = program_->unions[found->second];
      if (one.type != stack.type) id.refuse("a header union of another type than the stack's");
      if (std::find(stack.headers.begin(), stack.headers.end(), one.headers[0]) !=
          stack.headers.end()) {
        id.refuse("a header union that is in the stack already");
      }
      stack.headers.insert(stack.headers.end(), one.headers.begin(), one.headers.end());
    });
    if (stack.headers.empty()) at["header_union_ids"].refuse("a stack without unions");
    name(union_stacks_, at, static_cast<Index>(program_->stacks.size()), "header union stack");
    program_->stacks.push_back(std::move(stack));
  });
  union_members_ = std::move(members);
  program_->blank.assign(program_->words, 0);
  for (const Header& header : program_->headers) {
    if (header.is_metadata) program_->blank[header.base + valid_word] = 1;
  }
}

Field Loader::at_base(Field field, Index base) {
  field.word += base;
  if (field.written != 0) field.written += base;
  return field;
}

Field Loader::field_of_type(Index index, const JsonAt& at) const {
  const HeaderType& type = program_->types[index];
  if (at.text() == "$valid$") {
    Field valid;
    valid.word = valid_word;
    valid.bits = 1;
    return valid;
  }
  const auto found = std::find(type.names.begin(), type.names.end(), at.text());
  if (found == type.names.end()) at.refuse(type.name + " has no field " + at.text());
  return type.fields[static_cast<std::size_t>(found - type.names.begin())];
}

Field Loader::field_of(Index index, const JsonAt& at) const {
  const Header& header = program_->headers[index];
  return at_base(field_of_type(header.type, at), header.base);
}

Index Loader::header_of_field(const JsonAt& at) const {
  return find(headers_, at.element(0), "header");
}

Field Loader::field(const JsonAt& at) const {
  if (at.size() != 2) at.refuse("not a header and a field");
  return field_of(header_of_field(at), at.element(1));
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

/// Sums do not mind the order of 16-bit words, so all that matters is how a field lies in them.
/// That is known if every run of a header's fields, which is not there when the header is not
/// valid, takes whole words.
void Loader::make_sum(Calculation& calculation) const {
  std::vector<SumRun> runs;
  std::uint64_t constants = 0;
  std::uint32_t bits = 0;
  std::uint32_t shift = 0;  // of what was added last
  const auto add = [&](const Field& field, Index header, Index word) {
    if (!runs.empty() && runs.back().variable != none) return false;
    const Index valid = header == none ? none : program_->headers[header].base + valid_word;
    const bool same = !runs.empty() && header != none && runs.back().valid == valid;
    if (!same && bits % 16 != 0) return false;
    if (field.is_variable && bits % 16 != 0) return false;
    bits += field.bits;
    shift = (16 - bits % 16) % 16;
    if (!same || field.is_variable) runs.push_back({valid, {}, {}, none});
    if (field.is_variable) {
      runs.back().variable = word;
    } else {
      auto& parts = field.bits <= 32 ? runs.back().narrow : runs.back().wide;
      for (Index i = 0; i < field.limbs; ++i) parts.push_back({word + i, shift});
    }
    return true;
  };
  for (const CalculationInput& input : calculation.inputs) {
    switch (input.what) {
      case CalculationInput::What::payload:
        return;
      case CalculationInput::What::constant:
        if (!add(input.field, none, none)) return;
        for (const std::uint64_t word : input.value) {
          constants += ((word & 0xffffffff) + (word >> 32)) << shift;
        }
        break;
      case CalculationInput::What::field:
        if (!add(input.field, input.header, input.field.word)) return;
        break;
      case CalculationInput::What::header: {
        const Header& header = program_->headers[input.header];
        for (const Field& field : program_->types[header.type].fields) {
          if (!add(field, input.header, header.base + field.word)) return;
        }
        break;
      }
    }
  }
  calculation.sum = std::move(runs);
  std::erase_if(calculation.sum, [](const SumRun& run) { return run.valid == none; });
  calculation.sum_of_constants = constants;
}

JsonAt Loader::use(const char* op, const JsonAt::Json& value, const JsonAt& otherwise) const {
  JsonAt found = otherwise;
  root_.each("actions", [&](const JsonAt& action) {
    action.each("primitives", [&](const JsonAt& primitive) {
      if (!primitive.has("op") || primitive["op"].json() != op) return;
      primitive.each("parameters", [&](const JsonAt& parameter) {
        if (parameter.has("value") && parameter["value"].json() == value) found = primitive;
      });
    });
  });
  return found;
}

void Loader::load_calculations() {
  root_.each("calculations", [&](const JsonAt& at) {
    Calculation calculation;
    calculation.name = at["name"].text();
    calculation.function = hash_function(at["algo"].text());
    if (calculation.function == nullptr) {
      use("modify_field_with_hash_based_offset", at["name"].json(), at["algo"])
          .unsupported("hash algorithm \"" + at["algo"].text() + "\"");
    }
    load_inputs(at["input"], calculation);
    if (calculation.function == internet_checksum) make_sum(calculation);
    name(calculations_, at, static_cast<Index>(program_->calculations.size()), "calculation");
    program_->calculations.push_back(std::move(calculation));
  });
}

void Loader::load_inputs(const JsonAt& at, Calculation& calculation) {
  std::uint64_t bits = 0;
  at.each([&](const JsonAt& one) {
    const std::string& type = one["type"].text();
    CalculationInput input;
    if (type == "field") {
      input.what = CalculationInput::What::field;
      input.header = header_of_field(one["value"]);
      input.field = field(one["value"]);
    } else if (type == "hexstr") {
      input.what = CalculationInput::What::constant;
      input.field.bits = static_cast<std::uint32_t>(one["bitwidth"].whole(1, 64 * max_field_words));
      input.field.limbs = (input.field.bits + 63) / 64;
      input.value = number(one["value"], input.field.bits);
    } else if (type == "header") {
      input.what = CalculationInput::What::header;
      input.header = find(headers_, one["value"], "header");
      const HeaderType& of = program_->types[program_->headers[input.header].type];
      bits += 8 * of.max_bytes;
    } else if (type == "payload") {
      input.what = CalculationInput::What::payload;
    } else {
      one.unsupported("hash over \"" + type + "\"");
    }
    bits += input.field.bits;
    if (bits > 1 << 20) at.refuse("more than a million bits");
    calculation.inputs.push_back(std::move(input));
  });
}

void Loader::load_checksums() {
  root_.each("checksums", [&](const JsonAt& at) {
    Checksum checksum;
    checksum.name = at["name"].text();
    if (at["type"].text() != "generic") {
      at.unsupported("checksum of type \"" + at["type"].text() + "\"");
    }
    checksum.header = header_of_field(at["target"]);
    checksum.target = field(at["target"]);
    if (checksum.target.limbs != 1 || checksum.target.is_variable || checksum.target.written == 0) {
      at["target"].unsupported("checksum of more than 64 bits");
    }
    checksum.calculation = find(calculations_, at["calculation"], "calculation");
    checksum.update = at.flag("update", true);
    checksum.verify = at.flag("verify", true);
    if (at.has("if_cond")) checksum.condition = truth(at["if_cond"]).node;
    program_->checksums.push_back(std::move(checksum));
  });
}

void Loader::load_lists() {
  root_.each("field_lists", [&](const JsonAt& at) {
    FieldList list;
    at["elements"].each([&](const JsonAt& one) {
      const std::string& type = one["type"].text();
      if (type == "field") {
        list.fields.push_back(field(one["value"]));
      } else if (type != "hexstr") {
        one.unsupported("\"" + type + "\" in a list of fields");
      }
    });
    if (!program_->field_lists.emplace(at["id"].whole(0, 0x7fffffff), std::move(list)).second) {
      at["id"].refuse("another field list has this id");
    }
  });
  root_.each("learn_lists", [&](const JsonAt& at) {
    LearnList list;
    list.id = static_cast<std::uint32_t>(at["id"].whole(0, 0x7fffffff));
    list.name = at["name"].text();
    at["elements"].each([&](const JsonAt& one) {
      const auto refuse = [&](const std::string& what) {
        char id[16];
        std::snprintf(id, sizeof id, "0x%x", list.id);
        use("generate_digest", id, one).unsupported(what + " in a digest");
      };
      if (one["type"].text() != "field") refuse("\"" + one["type"].text() + "\"");
      list.fields.push_back(field(one["value"]));
      if (list.fields.back().is_variable) refuse("field of variable length");
      list.names.push_back(one["value"].element(0).text() + "." + one["value"].element(1).text());
    });
    const std::uint64_t id = list.id;
    if (!program_->learn_lists.emplace(id, std::move(list)).second) {
      at["id"].refuse("another digest has this id");
    }
    program_->learn_order.push_back(id);
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
    const auto found = values.find(name);
    return found != values.end() ? found->second : next++;
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
    Field found;
    const auto alias = aliases.find(full);
    const auto of = headers_.find(header);
    if (alias != aliases.end()) {
      found = alias->second;
    } else if (of != headers_.end()) {
      const Header& real = program_->headers[of->second];
      const HeaderType& type = program_->types[real.type];
      const auto at = std::find(type.names.begin(), type.names.end(), member);
      if (at != type.names.end()) {
        found = at_base(type.fields[static_cast<std::size_t>(at - type.names.begin())], real.base);
      }
    }
    if (needed && found.bits == 0) {
      root_.refuse("has no field " + full, "compile it for the architecture v1model");
    }
    if (found.is_variable || found.limbs > 1 || (found.bits != 0 && found.written == 0)) {
      root_.refuse(full + " is not a number");
    }
    return found;
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
  if (deparsers.size() != 1) deparsers.unsupported("anything but one deparser");
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

Description description_of(const Compiled& program) {
  Description all;
  constexpr const char* kinds[] = {"exact", "lpm", "ternary", "range", "valid"};
  for (const Table& table : program.tables) {
    DescribedTable one;
    one.name = table.name;
    for (const KeyField& field : table.key) {
      one.key.push_back(
          {field.name, field.field.bits, kinds[static_cast<std::size_t>(field.match)]});
    }
    for (const Index action : table.actions) one.actions.push_back(program.actions[action].name);
    one.size = table.size;
    if (table.profile != none) one.profile = program.profiles[table.profile].name;
    one.with_groups = table.with_groups;
    one.is_constant = table.is_constant;
    one.is_hidden = table.is_hidden;
    one.has_counters = table.with_counters;
    one.has_timeouts = table.with_timeouts;
    if (table.meter != none) one.meter = program.meters[table.meter].name;
    all.tables.push_back(std::move(one));
  }
  for (const auto& [id, index] : program.action_ids) {
    const Action& action = program.actions[index];
    DescribedAction one{action.name, {}};
    for (const Parameter& parameter : action.parameters) {
      one.parameters.push_back({parameter.name, parameter.bits, ""});
    }
    all.actions.push_back(std::move(one));
  }
  const auto table_name = [&](Index table) {
    return table == none ? std::string() : program.tables[table].name;
  };
  for (const RegisterArray& array : program.registers) {
    all.registers.push_back({array.name, array.size, array.cell.bits, false, "", false});
  }
  for (const CounterArray& array : program.counters) {
    all.counters.push_back(
        {array.name, array.size, 0, array.is_direct, table_name(array.table), false});
  }
  for (const MeterArray& array : program.meters) {
    all.meters.push_back(
        {array.name, array.size, 0, array.is_direct, table_name(array.table), array.bytes});
  }
  for (const ValueSet& set : program.value_sets) {
    all.value_sets.push_back({set.name, set.size, set.bits, false, "", false});
  }
  for (const Profile& profile : program.profiles) {
    all.profiles.push_back({profile.name, profile.size, 0, false, "", false});
  }
  for (const std::uint64_t id : program.learn_order) {
    const LearnList& list = program.learn_lists.at(id);
    DescribedDigest one{list.id, list.name, {}};
    for (std::size_t i = 0; i < list.fields.size(); ++i) {
      one.fields.push_back({list.names[i], list.fields[i].bits, ""});
    }
    all.digests.push_back(std::move(one));
  }
  all.notices = program.notices;
  all.headers = program.headers.size();
  all.parser_states = program.states.size();
  return all;
}

}  // namespace nagi::p4
