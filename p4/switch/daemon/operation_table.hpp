// SPDX-License-Identifier: Apache-2.0
//
// The tables of a controller's operations, by kind of the objects that operations change or read.
// operations.hpp has the JSON of operations.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/object_reader.hpp"
#include "program/control.hpp"

namespace nagi::p4 {

struct ControllerOperation {
  nlohmann::json (*perform)(Control&, ObjectReader&);  // reads the request, returns the answer
  std::vector<std::string_view> keys;                  // keys that the request may have
};
using OperationTable = std::unordered_map<std::string, ControllerOperation>;

/// Return the operations on tables and action profiles.
OperationTable table_operations();
/// Return the operations on registers, counters and meters.
OperationTable array_operations();
/// Return the operations on mirror sessions, multicast groups and value sets.
OperationTable replication_operations();

}  // namespace nagi::p4
