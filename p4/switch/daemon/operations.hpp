// SPDX-License-Identifier: Apache-2.0
//
// The operations of a controller as JSON. Each JSON object is one operation. The answer is
// {"ok": true, ...} with the keys on the right.
//
// Numbers are JSON integers, "0x..." of any width, or addresses: "10.0.0.1", "2001:db8::1",
// "02:00:00:00:00:01".
//
//   {"op": "table_add", "table": T, "match": [M, ...], TARGET, "priority": 1,     "handle": 0
//       "timeout_us": 5000000}
//   {"op": "table_modify", "table": T, ENTRY, TARGET, "timeout_us": 0}
//   {"op": "table_delete", "table": T, ENTRY}
//   {"op": "table_clear", "table": T}
//   {"op": "table_read", "table": T, ENTRY}, or all entries, at most "limit"      "entries",
//       (1,000) of them, starting at position "from"                  "next": position or null
//       An entry has "handle", "match", "priority" and TARGET as above; "hits", "idle_us" (since
//       the last hit), "timeout_us"; "packets" and "bytes" of a direct counter, "rates" of a direct
//       meter.
//   {"op": "table_default", "table": T, TARGET}; without TARGET it restores the program's default
//   {"op": "default_read", "table": T}                      TARGET, "is_initial" (whether it is the
//                                                           program's default), "hits", "misses"
//       ENTRY: "handle": 0, or "match": [M, ...] with "priority" if the table has priorities.
//       "timeout_us": "events" returns the entry after this time without a hit; only in tables with
//       support_timeout.
//       TARGET: "action": A, "data": [1, "02:..."]; or "member": 3 or "group": 1, if the table has
//       an action profile. "data" may be missing if the action has no parameters.
//       M: 5 or "10.0.0.1" (exact), "10.0.0.0/8" or {"value": V, "prefix": 8}, {"value": V,
//       "mask": V}, {"low": V, "high": V}, null (any). The smaller priority wins.
//   {"op": "member_add", "profile": P, "action": A, "data": [...]}                "member": 0
//   {"op": "member_modify", "profile": P, "member": 0, "action": A, "data": [...]}
//   {"op": "member_delete", "profile": P, "member": 0}
//   {"op": "group_create", "profile": P}                                          "group": 0
//   {"op": "group_add_member", "profile": P, "group": 0, "member": 0}
//   {"op": "group_remove_member", "profile": P, "group": 0, "member": 0}
//   {"op": "group_delete", "profile": P, "group": 0}
//   {"op": "member_read", "profile": P, "member": 0} (all without member)         "members"
//   {"op": "group_read", "profile": P, "group": 0} (all without group)            "groups"
//   {"op": "register_read", "register": R, "index": 0} (all without index)        "values": [...]
//   {"op": "register_write", "register": R, "index": 0, "value": V}
//   {"op": "register_reset", "register": R}
//   {"op": "counter_read", "counter": C, "index": 0}, or "table", ENTRY   "packets", "bytes"
//       all cells of an array without index                  "counts": [[packets, bytes], ...]
//   {"op": "counter_write", "counter": C, "index": 0 (or "table", ENTRY), "packets": 0, "bytes": 0}
//   {"op": "counter_reset", "counter": C}
//   {"op": "meter_rates", "meter": N, "index": 0 (all without), or "table", ENTRY,
//       "rates": [{"per_us": 0.5, "burst": 10}, ...]}
//   {"op": "meter_read", "meter": N, "index": 0}, or "table", ENTRY               "rates"
//       all cells of an array without index                            "cells": [rates, ...]
//   {"op": "mirror_add", "session": 1, "port": 2 and/or "group": 1, "max_bytes": 128},
//       {"op": "mirror_delete", "session": 1}, {"op": "mirror_read"}              "sessions"
//   {"op": "multicast_create", "group": 1, "copies": [{"rid": 0, "ports": [1, 2]}]},
//       {"op": "multicast_delete", "group": 1}, {"op": "multicast_read"}          "groups"
//   {"op": "value_set_add", "set": S, "value": V}, {"op": "value_set_clear", "set": S},
//       {"op": "value_set_read", "set": S}                                        "values"
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/object_reader.hpp"
#include "program/control.hpp"

namespace nagi::p4 {

/// Perform operation `op`, whose other keys `reader` reads, and return the answer. Throws
/// ConfigError if the request is invalid, or InputError if `control` refuses it; in both cases
/// nothing has changed.
nlohmann::json perform_operation(Control& control, ObjectReader& reader, const std::string& op);

}  // namespace nagi::p4
