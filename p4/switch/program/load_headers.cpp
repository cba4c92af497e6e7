// SPDX-License-Identifier: Apache-2.0
//
// Loads the headers, header stacks and header unions of a program, and finds fields by name.
#include <algorithm>

#include "program/loader.hpp"

namespace nagi::p4 {

namespace {

constexpr std::uint32_t max_words = 1 << 16;  // words of one packet's fields

/// Return how to extract each field of a header from 8 bytes. Return an empty vector if a field
/// cannot be extracted that way.
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
    std::uint32_t bits = field.bits % 64 == 0 ? 64 : field.bits % 64;  // bits of the highest word
    for (std::uint32_t limb = field.limbs; limb-- > 0; bits = 64) {
      const Index word = field.word + limb;
      const std::uint32_t end = at % 64 + bits;
      if (end <= 64) {
        chunks[at / 64].parts.push_back({word, static_cast<std::uint8_t>(64 - end), 0});
      } else {
        chunks[at / 64].parts.push_back({word, 0, static_cast<std::uint8_t>(end - 64)});
        chunks[at / 64 + 1].parts.push_back({word, static_cast<std::uint8_t>(128 - end), 0});
      }
      at += bits;
    }
  }
  return chunks;
}
}  // namespace

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
          at.unsupported("header type that defines the length of its field of variable length");
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
      field.word = type.words;  // after the other fields
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
  // p4c lists a variable whose type is a header union among the headers.
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
      const auto entry = header_ids_.find(one.whole(0, 0x7fffffff));
      if (entry == header_ids_.end()) one.refuse("no header has this id");
      if (program_->headers[entry->second].type != stack.type) {
        one.refuse("a header of another type than the stack's");
      }
      if (program_->headers[entry->second].is_metadata) {
        // p4c marks elements of local stacks as metadata, but they have a validity like headers.
        program_->headers[entry->second].is_metadata = false;
      }
      if (std::find(stack.headers.begin(), stack.headers.end(), entry->second) !=
          stack.headers.end()) {
        one.refuse("a header that is in the stack already");
      }
      stack.headers.push_back(entry->second);
    });
    if (stack.headers.empty()) at["header_ids"].refuse("a stack without headers");
    name(stacks_, at, static_cast<Index>(program_->stacks.size()), "header stack");
    program_->stacks.push_back(std::move(stack));
  });
}

void Loader::load_unions() {
  Names types;
  std::vector<Names> members;  // by type, with their indices
  root_.each("header_union_types", [&](const JsonAt& at) {
    name(types, at, static_cast<Index>(members.size()), "header union type");
    Names member_indexes;
    at["headers"].each([&](const JsonAt& one) {
      if (!member_indexes.emplace(one.element(0).text(), static_cast<Index>(member_indexes.size()))
               .second) {
        one.refuse("a member of this name is there already");
      }
    });
    if (member_indexes.empty()) at["headers"].refuse("a union without headers");
    members.push_back(std::move(member_indexes));
  });
  std::unordered_map<std::uint64_t, Index> ids;
  root_.each("header_unions", [&](const JsonAt& at) {
    Union one;
    one.name = at["name"].text();
    one.type = find(types, at["union_type"], "header union type");
    const auto index = static_cast<Index>(program_->unions.size());
    at["header_ids"].each([&](const JsonAt& id) {
      const auto entry = header_ids_.find(id.whole(0, 0x7fffffff));
      if (entry == header_ids_.end()) id.refuse("no header has this id");
      Header& header = program_->headers[entry->second];
      if (header.union_index != none || header.is_metadata) id.refuse("a header that is no member");
      header.union_index = index;
      one.headers.push_back(entry->second);
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
      const auto entry = ids.find(id.whole(0, 0x7fffffff));
      if (entry == ids.end()) id.refuse("no header union has this id");
      const Union& one = program_->unions[entry->second];
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
  const auto entry = std::find(type.names.begin(), type.names.end(), at.text());
  if (entry == type.names.end()) at.refuse(type.name + " has no field " + at.text());
  return type.fields[static_cast<std::size_t>(entry - type.names.begin())];
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
}  // namespace nagi::p4
