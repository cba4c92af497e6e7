// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/load.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ostream>
#include <sstream>

#include "io/input_error.hpp"

namespace nagi::p4 {

Program load_program_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    throw InputError(path + ": cannot read it: " + std::strerror(errno) +
                     "; give the JSON that p4c-bm2-ss made of a program");
  }
  return load_program(text.str(), path);
}

void print(std::ostream& out, const Description& program) {
  out << "parser: " << program.parser_states << " states; " << program.headers << " headers; "
      << program.actions.size() << " actions\n";
  for (const DescribedTable& table : program.tables) {
    if (table.is_hidden) continue;
    out << "table " << table.name << " (";
    for (std::size_t i = 0; i < table.key.size(); ++i) {
      const Described& key = table.key[i];
      out << (i == 0 ? "" : ", ") << key.name << ": " << key.match << " " << key.bits;
    }
    out << "), " << table.size << " entries";
    if (table.is_constant) out << ", constant";
    if (table.has_counters) out << ", counted";
    if (!table.meter.empty()) out << ", metered";
    if (!table.profile.empty()) {
      out << (table.with_groups ? ", groups of " : ", members of ") << table.profile;
    }
    out << ":";
    for (const std::string& action : table.actions) out << " " << action;
    out << "\n";
  }
  for (const auto& [kind, arrays] :
       {std::pair("register", &program.registers), std::pair("counter", &program.counters),
        std::pair("meter", &program.meters), std::pair("value set", &program.value_sets),
        std::pair("profile", &program.profiles)}) {
    for (const DescribedArray& array : *arrays) {
      out << kind << " " << array.name;
      if (array.is_direct) {
        out << ", of table " << array.table;
      } else {
        out << ", " << array.size << " cells";
      }
      if (array.bits != 0) out << " of " << array.bits << " bits";
      out << "\n";
    }
  }
  for (const DescribedDigest& digest : program.digests) {
    out << "digest " << digest.name << " (";
    for (std::size_t i = 0; i < digest.fields.size(); ++i) {
      out << (i == 0 ? "" : ", ") << digest.fields[i].name << ": " << digest.fields[i].bits;
    }
    out << ")\n";
  }
  for (const std::string& notice : program.notices) out << "notice: " << notice << "\n";
}

}  // namespace nagi::p4
