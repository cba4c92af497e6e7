// SPDX-License-Identifier: Apache-2.0
#include "object.hpp"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "io/input_error.hpp"

namespace nagi::tcp {
namespace {

constexpr std::string_view struct_ops_section = ".struct_ops";
constexpr std::string_view newer_section = ".struct_ops.link";
constexpr std::string_view tag = "nagi_parameter|";
constexpr std::size_t name_bytes = 16;       // TCP_CA_NAME_MAX, which includes the final zero
constexpr std::uint32_t non_restricted = 1;  // TCP_CONG_NON_RESTRICTED

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path + ": cannot be read: " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(const std::string& text, char separator, std::size_t max_parts) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (parts.size() + 1 < max_parts) {
    const std::size_t end = text.find(separator, begin);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::optional<std::uint32_t> parse_whole_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

using Elf = std::unique_ptr<::Elf, decltype(&elf_end)>;
using Btf = std::unique_ptr<btf, decltype(&btf__free)>;

Elf open_elf(std::string& image) {
  elf_version(EV_CURRENT);
  return {elf_memory(image.data(), image.size()), &elf_end};
}

/// Call `visit(name, header, section)` for every section.
template <typename Visit>
void for_each_section(::Elf* elf, const Visit& visit) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr) visit(std::string(name), header, section);
  }
}

}  // namespace

Object::Object(const std::string& path) : Object(path, read_file(path)) {}

Object::Object(std::string path, std::string image)
    : path_(std::move(path)), image_(std::move(image)) {
  accept_newer_section_name();
  find_variables();
  read_types();
}

/// Rename the section .struct_ops.link, which newer objects often use, to .struct_ops, because libbpf before 1.2
/// knows only .struct_ops. Nothing is lost, because nagi-tcp always registers the scheme with a link.
void Object::accept_newer_section_name() {
  const Elf elf = open_elf(image_);
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for_each_section(elf.get(), [&](const std::string& name, const GElf_Shdr& header, Elf_Scn*) {
    if (name == ".BTF" || header.sh_type == SHT_STRTAB) {
      ranges.emplace_back(header.sh_offset, header.sh_size);
    }
  });
  for (const auto& [begin, size] : ranges) {
    if (!is_inside(begin, size)) continue;
    const std::string newer(newer_section.data(), newer_section.size() + 1);  // with its final zero
    for (std::size_t at = image_.find(newer, begin); at != std::string::npos && at < begin + size;
         at = image_.find(newer, at + 1)) {
      std::fill_n(image_.begin() + static_cast<std::ptrdiff_t>(at + struct_ops_section.size()),
                  newer_section.size() - struct_ops_section.size(), '\0');
    }
  }
}

bool Object::is_inside(std::uint64_t offset, std::uint64_t size) const {
  return offset <= image_.size() && size <= image_.size() - offset;
}

std::string_view Object::find_section(std::string_view section_name) {
  const Elf elf = open_elf(image_);
  std::string_view content;
  for_each_section(elf.get(), [&](const std::string& name, const GElf_Shdr& header, Elf_Scn*) {
    if (name != section_name || header.sh_type == SHT_NOBITS) return;
    if (!is_inside(header.sh_offset, header.sh_size)) return;
    content = std::string_view(image_).substr(header.sh_offset, header.sh_size);
  });
  return content;
}

void Object::find_variables() {
  const Elf elf = open_elf(image_);
  GElf_Ehdr file;
  if (!elf || gelf_getehdr(elf.get(), &file) == nullptr || file.e_machine != EM_BPF) {
    throw InputError(path_ + ": not an eBPF object file; compile a scheme with " +
                     "clang --target=bpf -g -O2 -c");
  }
  struct Section {
    std::string name;
    GElf_Shdr header;
  };
  std::map<std::size_t, Section> sections;
  Elf_Scn* symbols = nullptr;
  GElf_Shdr table{};
  for_each_section(elf.get(),
                   [&](const std::string& name, const GElf_Shdr& header, Elf_Scn* section) {
                     sections[elf_ndxscn(section)] = {name, header};
                     if (header.sh_type == SHT_SYMTAB) {
                       symbols = section;
                       table = header;
                     }
                   });
  Elf_Data* data = symbols == nullptr ? nullptr : elf_getdata(symbols, nullptr);
  if (data == nullptr || table.sh_entsize == 0) return;
  for (int i = 0; i < static_cast<int>(table.sh_size / table.sh_entsize); ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr) break;
    const char* name = elf_strptr(elf.get(), table.sh_link, symbol.st_name);
    const auto section = sections.find(symbol.st_shndx);
    if (name == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
        section == sections.end()) {
      continue;
    }
    const GElf_Shdr& header = section->second.header;
    const bool is_zero = header.sh_type == SHT_NOBITS;  // a zero variable is not in the file
    const bool outside = symbol.st_value > header.sh_size ||
                         symbol.st_size > header.sh_size - symbol.st_value ||
                         (!is_zero && !is_inside(header.sh_offset, header.sh_size));
    if (outside) throw InputError(path_ + ": damaged: variable " + name + " is outside the file");
    variables_[name] = {header.sh_offset + symbol.st_value, symbol.st_value, symbol.st_size,
                        section->second.name, is_zero};
  }
}

void Object::read_types() {
  const std::string_view bytes = find_section(".BTF");
  const Btf types(
      bytes.empty() ? nullptr : btf__new(bytes.data(), static_cast<std::uint32_t>(bytes.size())),
      &btf__free);
  if (!types) {
    throw InputError(path_ + ": has no type information (BTF); compile it with clang -g");
  }
  const auto text = [&](std::uint32_t offset) {
    const char* name = btf__name_by_offset(types.get(), offset);
    return std::string(name == nullptr ? "" : name);
  };
  const auto count = btf__type_cnt(types.get());
  std::vector<std::string> schemes;
  for (std::uint32_t id = 1; id < count; ++id) {
    const btf_type* type = btf__type_by_id(types.get(), id);
    if (btf_is_var(type)) {
      const auto variable = variables_.find(text(type->name_off));
      const int resolved = btf__resolve_type(types.get(), type->type);
      const btf_type* structure =
          resolved < 0 ? nullptr
                       : btf__type_by_id(types.get(), static_cast<std::uint32_t>(resolved));
      if (variable == variables_.end() || variable->second.is_zero ||
          variable->second.section != struct_ops_section || structure == nullptr ||
          !btf_is_struct(structure) || text(structure->name_off) != "tcp_congestion_ops") {
        continue;
      }
      schemes.push_back(variable->first);
      const btf_member* member = btf_members(structure);
      for (std::uint16_t i = 0; i < btf_vlen(structure); ++i) {
        const std::string name = text(member[i].name_off);
        const std::size_t at = variable->second.at + btf_member_bit_offset(structure, i) / 8;
        if (name == "name") name_at_ = at;
        if (name == "flags") flags_at_ = at;
      }
      const std::size_t end = variable->second.at + variable->second.size;
      if (name_at_ != 0 && name_at_ + name_bytes > end) name_at_ = 0;
      if (flags_at_ != 0 && flags_at_ + sizeof(std::uint32_t) > end) flags_at_ = 0;
    } else if (btf_is_decl_tag(type) && text(type->name_off).starts_with(tag)) {
      const btf_type* tagged = btf__type_by_id(types.get(), type->type);
      if (tagged == nullptr) continue;
      const auto variable = variables_.find(text(tagged->name_off));
      const auto parts = split(text(type->name_off).substr(tag.size()), '|', 4);
      if (parts.size() != 4 || variable == variables_.end()) continue;
      const auto minimum = parse_whole_number(parts[0]);
      const auto maximum = parse_whole_number(parts[1]);
      if (!minimum || !maximum || variable->second.is_zero ||
          variable->second.size != sizeof(std::uint32_t) || variable->second.section != ".rodata") {
        throw InputError(path_ + ": parameter " + variable->first +
                         ": is not declared by NAGI_PARAMETER of hosts/tcp/glue/bpf.h");
      }
      parameters_.push_back({variable->first, read_word(variable->second.at), *minimum, *maximum,
                             parts[2], parts[3]});
    }
  }
  if (schemes.size() != 1 || name_at_ == 0) {
    throw InputError(path_ + ": has " + std::to_string(schemes.size()) +
                     " congestion controls with a name; give an object with one struct "
                     "tcp_congestion_ops in SEC(\".struct_ops\")");
  }
  scheme_ = schemes.front();
}

bool Object::has_events() const {
  const auto listening = variables_.find("nagi_listening");
  return listening != variables_.end() && !listening->second.is_zero &&
         listening->second.size == sizeof(bool) && variables_.contains("nagi_events") &&
         variables_.contains("nagi_events_lost");
}

std::size_t Object::offset_of(const std::string& variable) const {
  return variables_.at(variable).offset;
}

std::uint32_t Object::read_word(std::size_t at) const {
  std::uint32_t value = 0;
  std::memcpy(&value, image_.data() + at, sizeof value);
  return value;
}

void Object::set_word(std::size_t at, std::uint32_t value) {
  std::memcpy(image_.data() + at, &value, sizeof value);
}

void Object::set_name(const std::string& name) {
  const bool allowed = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '.';
  });
  if (name.empty() || name.size() >= name_bytes || !allowed) {
    throw InputError("\"" + name +
                     "\" is no name for a congestion control; give 1 to 15 letters, " +
                     "digits, '_' or '.'");
  }
  std::fill_n(image_.begin() + static_cast<std::ptrdiff_t>(name_at_), name_bytes, '\0');
  std::copy(name.begin(), name.end(), image_.begin() + static_cast<std::ptrdiff_t>(name_at_));
  const auto copy = variables_.find("nagi_name");
  if (copy != variables_.end() && !copy->second.is_zero && copy->second.size == name_bytes) {
    std::copy_n(image_.begin() + static_cast<std::ptrdiff_t>(name_at_), name_bytes,
                image_.begin() + static_cast<std::ptrdiff_t>(copy->second.at));
  }
  // Every network namespace may use the scheme. Only connections for which its name is set use it.
  if (flags_at_ != 0) set_word(flags_at_, read_word(flags_at_) | non_restricted);
}

void Object::set_parameter(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const auto parameter =
      std::find_if(parameters_.begin(), parameters_.end(),
                   [&](const Parameter& candidate) { return candidate.name == name; });
  if (parameter == parameters_.end()) {
    std::string names;
    for (const Parameter& other : parameters_) names += (names.empty() ? "" : ", ") + other.name;
    throw InputError(scheme_ + " has no parameter \"" + name + "\"; " +
                     (names.empty() ? "it has no parameters" : "it has " + names));
  }
  const std::string range = std::to_string(parameter->minimum) + " to " +
                            std::to_string(parameter->maximum) + " " + parameter->unit;
  const auto value = equals == std::string::npos
                         ? std::nullopt
                         : parse_whole_number(std::string_view(assignment).substr(equals + 1));
  if (!value || *value < parameter->minimum || *value > parameter->maximum) {
    throw InputError(scheme_ + ": " + assignment + ": give " + name + "= a whole number from " +
                     range + " (" + parameter->meaning + ")");
  }
  set_word(variables_.at(name).at, *value);
}

void Object::set_cong_control_arguments(std::uint32_t arguments) {
  const auto variable = variables_.find("nagi_arguments");
  if (variable != variables_.end() && !variable->second.is_zero &&
      variable->second.size == sizeof arguments) {
    set_word(variable->second.at, arguments);
  }
}

void Object::set_listening() { image_[variables_.at("nagi_listening").at] = 1; }

std::map<std::string, std::uint32_t> Object::values() const {
  std::map<std::string, std::uint32_t> values;
  for (const Parameter& parameter : parameters_) {
    values[parameter.name] = read_word(variables_.at(parameter.name).at);
  }
  return values;
}

}  // namespace nagi::tcp
