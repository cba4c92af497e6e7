// SPDX-License-Identifier: Apache-2.0
//
// Calculations (hashes), checksums, and lists of fields.
#include <algorithm>
#include <cstdio>

#include "program/loader.hpp"

namespace nagi::p4 {

/// Prepare the fast calculation of an internet checksum (Calculation::sum) if that is possible. The
/// checksum does not depend on the order of 16-bit words, so only the position of a field within
/// its word matters. These positions are constant if the fields of each header together take whole
/// words, because all fields of a header are left out while the header is invalid.
void Loader::make_sum(Calculation& calculation) const {
  std::vector<SumRun> runs;
  std::uint64_t constants = 0;
  std::uint32_t bits = 0;
  std::uint32_t shift = 0;  // shift of the last field
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
    switch (input.kind) {
      case CalculationInput::Kind::payload:
        return;
      case CalculationInput::Kind::constant:
        if (!add(input.field, none, none)) return;
        for (const std::uint64_t word : input.value) {
          constants += ((word & 0xffffffff) + (word >> 32)) << shift;
        }
        break;
      case CalculationInput::Kind::field:
        if (!add(input.field, input.header, input.field.word)) return;
        break;
      case CalculationInput::Kind::header: {
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
  JsonAt result = otherwise;
  root_.each("actions", [&](const JsonAt& action) {
    action.each("primitives", [&](const JsonAt& primitive) {
      if (!primitive.has("op") || primitive["op"].json() != op) return;
      primitive.each("parameters", [&](const JsonAt& parameter) {
        if (parameter.has("value") && parameter["value"].json() == value) result = primitive;
      });
    });
  });
  return result;
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
      input.kind = CalculationInput::Kind::field;
      input.header = header_of_field(one["value"]);
      input.field = field(one["value"]);
    } else if (type == "hexstr") {
      input.kind = CalculationInput::Kind::constant;
      input.field.bits = static_cast<std::uint32_t>(one["bitwidth"].whole(1, 64 * max_field_words));
      input.field.limbs = (input.field.bits + 63) / 64;
      input.value = number(one["value"], input.field.bits);
    } else if (type == "header") {
      input.kind = CalculationInput::Kind::header;
      input.header = find(headers_, one["value"], "header");
      const HeaderType& header_type = program_->types[program_->headers[input.header].type];
      bits += 8 * header_type.max_bytes;
    } else if (type == "payload") {
      input.kind = CalculationInput::Kind::payload;
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
}  // namespace nagi::p4
