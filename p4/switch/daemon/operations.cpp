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
  const auto found = operations().find(op);
  if (found == operations().end()) {
    std::vector<std::string> names;
    for (const auto& [name, operation] : operations()) names.push_back(name);
    std::ranges::sort(names);
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw ConfigError(reader.at("op"), "unknown operation " + shown(op),
                      "one of " + known +
                          ", batch, digests, events, packet_out, pipeline_check, pipeline_read, "
                          "pipeline_set, queue_set, show, stop");
  }
  reader.only(found->second.keys);
  return found->second.perform(control, reader);
}

}  // namespace nagi::p4
