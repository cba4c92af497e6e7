// SPDX-License-Identifier: Apache-2.0
//
// A P4 program compiled: names have become indices, JSON has become arrays that a packet runs
// through. Nothing in here changes once the program is loaded; what changes is in state.hpp.
//
// A packet's fields lie in 64-bit words. A header takes, from its base on: its validity (0 or 1),
// where in the frame it was extracted, whether a field was written since, and then its fields:
// up to 64 bits in one word, wider ones in several, the lowest first. A field of variable length
// takes a word for its length in bits, and then its bytes as they are in the frame.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/hash.hpp"
#include "program/machine.hpp"

namespace nagi::p4 {

using Index = std::uint32_t;
constexpr Index none = 0xffffffff;
constexpr std::uint32_t max_field_words = 32;  // 2,048 bits, the widest that p4c makes

// Of a header's first words.
constexpr Index valid_word = 0;
constexpr Index origin_word = 1;   // its offset in the frame, plus 1; 0: not from the frame
constexpr Index written_word = 2;  // not 0: the frame no longer says what the fields say
constexpr Index first_field_word = 3;

struct Field {
  Index word = 0;           // of its header's type: from the base on; else: in the packet
  Index written = 0;        // its header's written_word
  std::uint32_t bits = 0;   // of one of variable length: the most it can have
  std::uint32_t limbs = 1;  // words
  bool is_signed = false;
  bool is_variable = false;
  [[nodiscard]] std::uint64_t mask() const { return bits >= 64 ? ~0ULL : (1ULL << bits) - 1; }
  [[nodiscard]] std::uint64_t top_mask() const {
    return bits % 64 == 0 ? ~0ULL : (1ULL << (bits % 64)) - 1;
  }
};

/// How a field of at most 64 bits comes out of a header of at least 8 bytes: 8 bytes from `at` on,
/// big endian, shifted and masked.
struct Pick {
  Index word;  // of the header
  std::uint32_t at;
  std::uint32_t shift;
  std::uint64_t mask;
};

/// How fields go into a header, 8 bytes of it at a time, the first in the highest bits: words of
/// the header, shifted to the left, or to the right if `shift` is negative.
struct Place {
  Index word;
  std::int32_t shift;
};
struct Chunk {
  std::uint32_t bytes = 0;  // 8, or what is left at the end
  std::vector<Place> places;
};

struct HeaderType {
  std::string name;
  std::vector<std::string> names;  // of the fields
  std::vector<Field> fields;
  std::vector<Pick> picks;      // as many as fields, if it can be extracted that way
  std::vector<Chunk> chunks;    // if it has no field of variable length
  Index variable = none;        // the field of variable length
  std::uint32_t bits = 0;       // without what is variable
  std::uint32_t words = 0;      // of one header
  std::uint32_t max_bytes = 0;  // with what is variable
};

struct Header {
  std::string name;
  Index type = 0;
  Index base = 0;
  Index of_union = none;  // of whose headers only one is valid
  bool is_metadata = false;
};

struct Union {
  std::string name;
  Index type = 0;
  std::vector<Index> headers;
};

/// Of headers, or of unions: then an element has as many headers as the union.
struct Stack {
  std::string name;
  Index type = 0;  // of a header, or of a union
  Index next = 0;  // the word that counts the extracted ones
  std::uint32_t width = 1;
  std::vector<Index> headers;
  [[nodiscard]] std::size_t size() const { return headers.size() / width; }
};

// --- Expressions -------------------------------------------------------------------------------

enum class Op : std::uint8_t {
  // values
  constant,
  field,
  variable,  // a field of variable length
  parameter,
  stack_last,
  access,
  register_cell,
  lookahead,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  shift_left,
  shift_right,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  wrap_signed,
  saturate_signed,
  saturate_unsigned,
  choose,
  of_bool,
  last_index,
  stack_size,
  // truths
  truth,
  is_equal,
  is_different,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  bool_equal,
  bool_different,
  both,
  either,
  negate,
  of_value,
  headers_equal,
  headers_different,
  is_valid,
  union_valid,
  // headers
  header,
  stack_element
};

/// How wide a value must be calculated: 64 or 128 bits with a sign, or any number.
enum class Width : std::uint8_t { word, twice, any };

struct Node {
  Op op = Op::constant;
  Width width = Width::word;    // of the operation
  Width compare = Width::word;  // of comparisons: of the operands
  bool is_plain = false;  // a comparison of fields or constants of 64 bits, without a sign, or such
                          // a field; or the validity of a header, in `field`
  Field field;            // of field, parameter, access (from the base on), lookahead
  Index a = none, b = none,
        c = none;           // operands; or the index of a stack, register, header, constant
  std::uint64_t value = 0;  // of a constant of 64 bits, or a truth
};

// --- Actions -----------------------------------------------------------------------------------

enum class Do : std::uint8_t {
  set_constant,
  set_field,      // both of at most 64 bits
  set_parameter,  // the same
  set_value,
  set_wide,
  set_dynamic,  // of a header that is known only then
  set_variable,
  set_header,
  set_stack,
  set_union,
  push,
  pop,
  jump,
  jump_if_zero,
  exit,
  assertion,
  log,
  add_header,
  remove_header,
  mark_to_drop,
  clone,
  resubmit,
  recirculate,
  digest,
  register_read,
  register_write,
  count,
  meter,
  hash,
  random,
  truncate,
  nothing,
};

struct Step {
  Do code = Do::exit;
  bool flag = false;                   // adds to packet_length; jumps back
  Field to;                            // the field that is set
  Field from;                          // where it comes from, of copies
  Index a = none, b = none, c = none;  // expressions, or the index of what it works on
  Index target = none;                 // header expression of set_dynamic
  std::uint64_t value = 0;             // a constant, a mask or the step to jump to
};

struct Parameter {
  std::string name;
  std::uint32_t bits = 0;
  Field field;  // word: in the entry's data; a bit wider and signed where the program gives a
                // negative value
};

struct Action {
  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t words = 0;  // of data
  std::vector<Step> steps;
};

struct LogMessage {
  std::vector<std::string> pieces;  // what is between the values: one more than there are values
  std::vector<Index> values;
};

// --- Parser ------------------------------------------------------------------------------------

enum class ParserDo : std::uint8_t {
  extract,
  extract_element,  // of a stack, known only at run time
  extract_next,
  extract_variable,
  extract_next_variable,
  set,
  verify,
  advance,
  act
};

struct ParserStep {
  ParserDo code = ParserDo::extract;
  Index object = none;       // header, stack or action
  std::uint32_t member = 0;  // of a union in a stack
  Index a = none, b = none;  // expressions
  std::uint32_t needs = 0;   // bytes that must be there to look ahead
  Step set;
};

/// A part of what a state selects by: a value, and how many bytes it takes in the key.
struct KeyPart {
  Index value = none;  // expression
  Index word = none;   // of a plain field of at most 64 bits: where it is
  std::uint32_t bits = 0;
  std::uint32_t limbs = 1;
};

struct Transition {
  std::vector<std::uint64_t> value, mask;  // as many words as the key
  Index set = none;                        // a use of a value set
  Index next = none;
};

/// A value set as one state uses it: the value's parts, and a mask on them.
struct ValueSetUse {
  Index set = none;
  std::vector<std::uint32_t> bits;
  std::vector<std::uint64_t> mask;  // empty: none
};

struct ParserState {
  std::string name;
  std::vector<ParserStep> steps;
  std::vector<KeyPart> key;
  std::uint32_t words = 0;
  std::uint32_t needs = 0;  // bytes that must be there to look ahead for the key
  std::vector<Transition> transitions;
  Index otherwise = none;
};

struct ValueSet {
  std::string name;
  std::uint32_t bits = 0;
  std::uint64_t size = 0;  // 0: no limit is known
};

// --- Tables ------------------------------------------------------------------------------------

enum class MatchKind : std::uint8_t { exact, lpm, ternary, range, valid };
enum class Kind : std::uint8_t { exact, lpm, ternary, range };

struct KeyField {
  std::string name;
  MatchKind match = MatchKind::exact;
  Field field;
  Index value = none;       // an expression, where the field is known only at run time
  Index word = 0;           // its first word in the key
  std::uint32_t shift = 0;  // within it; wide ones have words of their own
};

struct Table {
  std::string name;
  Kind kind = Kind::exact;
  std::vector<KeyField> key;
  std::uint32_t words = 0;
  std::vector<std::uint64_t> key_mask;  // that the program lays on it; empty: none
  std::uint64_t size = 0;
  std::vector<Index> actions;
  std::vector<Index> next;  // by action, as in `actions`
  /// Where in `actions` those of its action profile are, or nothing. The compiler numbers the same
  /// action anew for each table.
  std::vector<Index> places;
  bool by_hit = false;  // what is next depends on whether it hit
  Index hit_next = none, miss_next = none, base_next = none;
  Index default_action = none;
  std::vector<std::uint64_t> default_data;
  bool default_is_constant = false, default_action_is_constant = false;
  bool is_constant = false;
  bool is_hidden = false;
  Index profile = none;
  bool with_groups = false;
  bool with_timeouts = false;  // its entries may have an idle timeout
  bool with_counters = false;
  std::string counter_name;
  Index meter = none;
  std::uint32_t data_words = 0;  // the most that an action takes
};

struct Profile {
  std::string name;
  std::uint64_t size = 0;
  Index selector = none;  // a calculation
  std::vector<Index> actions;
};

struct FlowNode {
  /// `equal`: the condition that a word of the packet has a value, as most conditions are.
  enum class What : std::uint8_t { table, condition, equal, action } what = What::table;
  Index index = none;  // table, expression, word or action
  Index yes = none, no = none;
  std::uint64_t value = 0;
};

struct Pipeline {
  Index first = none;
  std::vector<FlowNode> nodes;
};

// --- Arrays and the rest -----------------------------------------------------------------------

struct RegisterArray {
  std::string name;
  std::uint64_t size = 0;
  Field cell;
};
struct CounterArray {
  std::string name;
  std::uint64_t size = 0;
  bool is_direct = false;
  Index table = none;  // of a direct one
};
struct MeterArray {
  std::string name;
  std::uint64_t size = 0;
  bool bytes = false;
  std::uint32_t rates = 2;
  bool is_direct = false;
  Index table = none;
  Field result;
};

struct CalculationInput {
  enum class What : std::uint8_t { field, constant, header, payload } what = What::field;
  Field field;
  Index header = none;
  std::uint32_t bits = 0;
  std::vector<std::uint64_t> value;
};
/// A word's part in an internet checksum: its value, shifted to where its 16-bit words lie.
struct SumPart {
  Index word = none;
  std::uint32_t shift = 0;
};
/// Parts that follow each other, of one header: they count while it is valid.
struct SumRun {
  Index valid = none;
  std::vector<SumPart> parts;
  Index variable = none;  // in place of parts: a field of variable length
};
struct Calculation {
  std::string name;
  HashFunction function = nullptr;
  std::vector<CalculationInput> inputs;
  /// Where each field adds the same to an internet checksum, whichever headers are valid: what they
  /// add. Empty: the bits have to be laid out.
  std::vector<SumRun> sum;
  std::uint64_t sum_of_constants = 0;
};

struct Checksum {
  std::string name;
  Index calculation = none;
  Index header = none;
  Field target;
  Index condition = none;
  bool verify = false, update = false;
};

/// A header as the deparser emits it.
struct EmittedHeader {
  Index header = none;
  Index base = none;
  std::uint32_t bytes = 0;  // without what is variable
  Index length = none;      // the word of its variable field's length in bits
  [[nodiscard]] bool is_valid(const std::uint64_t* words) const {
    return words[base + valid_word] != 0;
  }
  [[nodiscard]] std::size_t size(const std::uint64_t* words) const {
    return length == none ? bytes : bytes + words[length] / 8;
  }
};

struct FieldList {
  std::vector<Field> fields;
};

struct LearnList {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::string> names;
  std::vector<Field> fields;
};

class TableState;

/// Fields that the switch itself reads and writes; those that the program lacks have no bits.
struct StandardFields {
  Field ingress_port, egress_spec, egress_port, instance_type, packet_length, enqueued,
      enqueue_depth, queue_time, dequeue_depth, queue_id, ingress_time, egress_time,
      multicast_group, egress_rid, checksum_error, parser_error, priority;
};

struct Errors {
  std::uint64_t none = 0, too_short = 1, no_match = 2, stack_bounds = 3, header_too_short = 4,
                timeout = 5, invalid_argument = 6;
};

struct Compiled {
  Compiled();
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  std::string file;
  std::string text;  // the compiler's JSON
  std::vector<HeaderType> types;
  std::vector<Header> headers;
  std::vector<Union> unions;
  std::vector<Stack> stacks;                      // of headers, then of unions
  std::uint32_t words = 1;                        // of a packet; word 0 is nobody's
  std::vector<std::uint64_t> blank;               // a packet before it is parsed
  std::vector<std::pair<Index, Index>> metadata;  // runs of words: first, count
  std::vector<Node> nodes;
  std::vector<std::vector<std::uint64_t>> wide_constants;  // lowest word first, two's complement
  std::vector<Action> actions;
  std::vector<std::pair<std::uint64_t, Index>> action_ids;  // the program's own actions
  std::vector<LogMessage> messages;
  std::vector<std::string> places;   // of assertions, in the source
  std::vector<std::string> notices;  // see Description
  std::vector<ParserState> states;
  Index first_state = none;
  std::vector<ValueSet> value_sets;
  std::vector<ValueSetUse> value_set_uses;
  std::vector<EmittedHeader> deparser;  // in order
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
  std::vector<TableState> table_states;  // with the program's own entries; the machine takes them
};

Description description_of(const Compiled& program);

}  // namespace nagi::p4
