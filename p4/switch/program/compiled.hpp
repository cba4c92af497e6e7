// SPDX-License-Identifier: Apache-2.0
//
// A compiled P4 program. It has arrays instead of the JSON, and indices into arrays instead of
// names. A compiled program does not change after loading; state.hpp has the state that changes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/compiled/actions.hpp"
#include "program/compiled/arrays.hpp"
#include "program/compiled/expressions.hpp"
#include "program/compiled/fields.hpp"
#include "program/compiled/parser.hpp"
#include "program/compiled/tables.hpp"
#include "program/machine.hpp"

namespace nagi::p4 {

class TableState;

/// The fields that the switch itself reads and writes. Fields that the program does not have, have
/// 0 bits.
struct StandardFields {
  Field ingress_port, egress_spec, egress_port, instance_type, packet_length, enqueued,
      enqueue_depth, queue_time, dequeue_depth, queue_id, ingress_time, egress_time,
      multicast_group, egress_rid, checksum_error, parser_error, priority;
};

/// The numbers of the parser's errors in the program.
struct Errors {
  std::uint64_t none = 0, too_short = 1, no_match = 2, stack_bounds = 3, header_too_short = 4,
                timeout = 5, invalid_argument = 6;
};

struct Compiled {
  Compiled();
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  std::string file;  // name of the program in error messages
  std::string text;  // the compiler's JSON
  std::vector<HeaderType> types;
  std::vector<Header> headers;
  std::vector<Union> unions;
  std::vector<Stack> stacks;                      // stacks of headers, then stacks of unions
  std::uint32_t words = 1;                        // words of a packet; word 0 is unused
  std::vector<std::uint64_t> blank;               // the words of a packet before it is parsed
  std::vector<std::pair<Index, Index>> metadata;  // words of metadata: first word, number of words
  std::vector<Node> nodes;
  std::vector<std::vector<std::uint64_t>> wide_constants;  // lowest word first, two's complement
  std::vector<Action> actions;
  std::vector<std::pair<std::uint64_t, Index>> action_ids;  // the actions that the program declares
  std::vector<LogMessage> messages;
  std::vector<std::string> assertion_sources;  // source lines of assertions
  std::vector<std::string> notices;            // see Description
  std::vector<ParserState> states;
  Index first_state = none;
  std::vector<ValueSet> value_sets;
  std::vector<ValueSetUse> value_set_uses;
  std::vector<EmittedHeader> deparser;  // in the order of emission
  Index deparser_action = none;
  std::vector<Table> tables;
  std::vector<Profile> profiles;
  Pipeline ingress, egress;
  std::vector<RegisterArray> registers;
  std::vector<CounterArray> counters;
  std::vector<MeterArray> meters;
  std::vector<Calculation> calculations;
  std::vector<Checksum> checksums;
  std::unordered_map<std::uint64_t, FieldList> field_lists;
  std::unordered_map<std::uint64_t, LearnList> learn_lists;
  std::vector<std::uint64_t> learn_order;
  StandardFields standard;
  Errors errors;
  // tables with the entries that the program declares; the machine takes them over
  std::vector<TableState> table_states;
};

/// Return a description of the program for people, and for clients that write entries.
Description description_of(const Compiled& program);

}  // namespace nagi::p4
