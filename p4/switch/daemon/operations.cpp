// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/operations.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "switch/daemon/operation_table.hpp"

namespace nagi::p4 {

using nlohmann::json;

namespace {

const OperationTable& operations() {
  static const OperationTable all = [] {
    OperationTable merged = table_operations();
    merged.merge(array_operations());
    merged.merge(replication_operations());
    return merged;
  }();
  return all;
}

}  // namespace

json perform_operation(Control& control, ObjectReader& reader, const std::string& op) {
  const auto entry = operations().find(op);
  if (entry == operations().end()) {
    std::vector<std::string> names;
    for (const auto& [name, operation] : operations()) names.push_back(name);
    std::ranges::sort(names);
    std::string names_text;
    for (const std::string& name : names) names_text += (names_text.empty() ? "" : ", ") + name;
    throw ConfigError(reader.at("op"), "unknown operation " + shown(op),
                      "one of " + names_text +
                          ", batch, digests, events, packet_out, pipeline_check, pipeline_read, "
                          "pipeline_set, queue_set, show, stop");
  }
  reader.only(entry->second.keys);
  return entry->second.perform(control, reader);
}

}  // namespace nagi::p4
