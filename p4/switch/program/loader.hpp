// SPDX-License-Identifier: Apache-2.0
//
// Compiles the JSON of p4c to a Compiled. Each part of a program has a file: load.cpp (the whole
// program, arrays, errors, the deparser), load_headers.cpp, load_calculations.cpp,
// load_expression.cpp, load_operation.cpp, load_action.cpp, load_parser.cpp, load_table.cpp. All
// functions throw InputError if the JSON is wrong or not supported.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/compiled.hpp"
#include "program/evaluate.hpp"
#include "program/json_at.hpp"
#include "program/table_state.hpp"

namespace nagi::p4 {

class Loader {
 public:
  Loader(const nlohmann::json& root, const std::string& file) : root_(root, file) {}
  std::unique_ptr<Compiled> load();

 private:
  /// A `demand` is the number of low bits of a value that its user needs. This demand stands for
  /// all bits.
  static constexpr std::uint32_t exact = 0xffffffff;
  /// The maximum width of a value that is calculated exactly.
  static constexpr std::uint32_t max_bits = 16384;
  static constexpr unsigned deepest = 200;  // maximum depth of nested expressions

  enum class Kind : std::uint8_t { value, truth, header, stack };
  /// A compiled expression and its type.
  struct Value {
    Index node = none;
    Kind kind = Kind::value;
    // The value is between 0 and 2^bits - 1, or between -2^bits and 2^bits - 1 if signed.
    std::uint32_t bits = 0;
    bool is_signed = false;
    Index type = none;                    // type of a header
    std::optional<std::uint64_t> number;  // value of a constant that is not negative and fits
    bool all_ones = false;                // whether it is the constant 2^bits - 1
  };

  // load.cpp
  void load_arrays();
  void load_errors();
  void load_standard_fields();
  void load_deparser();
  /// Refuse arrays that need too much memory together.
  void take_bytes(const JsonAt& at, std::uint64_t count, std::uint64_t each);

  // load_calculations.cpp
  void load_calculations();
  void load_inputs(const JsonAt& at, Calculation& calculation);
  void make_sum(Calculation& calculation) const;
  void load_checksums();
  void load_lists();
  /// Return the position of a primitive `op` that has `value` as a parameter, or `otherwise`. For
  /// error messages: a primitive has a line of the P4 source, the object that it uses has none.
  [[nodiscard]] JsonAt use(const char* op, const JsonAt::Json& value,
                           const JsonAt& otherwise) const;

  // load_headers.cpp
  void load_header_types();
  void load_headers();
  void load_stacks();
  void load_unions();

  /// Indices of objects by the names that the JSON uses.
  using Names = std::unordered_map<std::string, Index>;
  /// Add the object at a position. Refuses a second object with the same name.
  void name(Names& names, const JsonAt& at, Index index, const char* object_kind) const;
  /// Return the index of the object whose name is at a position.
  [[nodiscard]] Index find(const Names& names, const JsonAt& at, const char* object_kind) const;
  /// Return the field that a pair [header, field] names.
  [[nodiscard]] Field field(const JsonAt& at) const;
  [[nodiscard]] Field field_of(Index header, const JsonAt& name) const;
  [[nodiscard]] Index header_of_field(const JsonAt& at) const;
  [[nodiscard]] Field field_of_type(Index type, const JsonAt& name) const;
  [[nodiscard]] static Field at_base(Field field, Index base);
  /// Convert a hexadecimal number of at most `bits` bits, without a sign, to words.
  [[nodiscard]] static std::vector<std::uint64_t> number(const JsonAt& at, std::uint32_t bits) {
    return number(at, at.text(), bits);
  }
  [[nodiscard]] static std::vector<std::uint64_t> number(const JsonAt& at, std::string digits,
                                                         std::uint32_t bits);

  // load_expression.cpp, and operation() in load_operation.cpp. `demand`: see `exact`. The
  // functions return the compiled expression, or its part. put*() append a node.
  Value expression(const JsonAt& at, std::uint32_t demand, unsigned depth = 0);
  /// Compile a number of the form {"type": ..., "value": ...}; a truth value is converted to 0
  /// or 1.
  Value value(const JsonAt& at, std::uint32_t demand);
  Value truth(const JsonAt& at);
  Value header(const JsonAt& at);
  Value operation(const JsonAt& at, std::uint32_t demand, unsigned depth);
  Value operand(const JsonAt& at, std::uint32_t demand, unsigned depth, Kind kind);
  std::optional<Value> end_of_stack(Index stack, const JsonAt& name);
  Value field_of_element(const JsonAt& at, std::uint32_t demand, unsigned depth);
  Value last_index(Index stack);
  Value constant(const JsonAt& at);
  Value put_field(Op op, const Field& field, std::uint32_t demand, Index object = none);
  Value put(Node node, std::uint32_t bits, bool is_signed, std::uint32_t demand);
  Value put_truth(Node node);
  [[nodiscard]] Width width_of(Index node) const { return program_->nodes[node].width; }

  // load_action.cpp
  void load_actions();
  void find_negative_data();
  Step primitive(const JsonAt& at, Action& action);
  Step assignment(const JsonAt& at, const JsonAt& to, const JsonAt& from);
  Step assignment(const JsonAt& at, const Field& to, Value from);
  Step assignment_of_variable(const JsonAt& to, const JsonAt& from);
  [[nodiscard]] Index object(const Names& names, const JsonAt& at, const char* type,
                             const char* object_kind) const;
  /// Return the index of a stack of headers or of unions.
  [[nodiscard]] Index any_stack(const JsonAt& at) const;
  [[nodiscard]] std::uint32_t union_member(Index stack, const JsonAt& at) const;
  [[nodiscard]] Field target(const JsonAt& at) const;
  Step log_message(const JsonAt& format, const JsonAt& values);

  // load_parser.cpp
  void load_value_sets();
  void load_parser();
  ParserStep parser_step(const JsonAt& at);
  void load_transitions(const JsonAt& at, ParserState& state, const Names& states);
  std::vector<std::uint64_t> key_number(const JsonAt& at, const ParserState& state) const;

  // load_table.cpp
  void load_pipelines();
  void load_profiles(const JsonAt& at);
  void load_table(const JsonAt& at);
  void load_key(const JsonAt& at, Table& table);
  void notice_digest(const JsonAt& at, Index action);
  void load_flow(const JsonAt& at, Pipeline& pipeline);
  void load_next(const JsonAt& at, Table& table, const Names& nodes) const;
  void load_default(const JsonAt& at, Table& table);
  void load_entries(const JsonAt& at, Index table);
  void refuse_cycles(const JsonAt& at, const Pipeline& pipeline) const;
  /// Return whether a node is an unsigned field or constant of at most 64 bits.
  [[nodiscard]] bool is_word(Index node) const;
  void shorten(FlowNode& node) const;
  void unwrap_actions(Pipeline& pipeline) const;
  std::vector<std::uint64_t> action_data(const JsonAt& at, Index action) const;
  [[nodiscard]] Index action_by_id(const JsonAt& at) const;

  JsonAt root_;
  std::unique_ptr<Compiled> program_ = std::make_unique<Compiled>();
  Names types_, headers_, stacks_, unions_, union_stacks_, registers_, counters_, meters_,
      calculations_, tables_, profiles_, value_sets_;
  std::vector<Names> union_members_;  // by union type: the index of each member
  std::unordered_map<std::uint64_t, Index> header_ids_, action_ids_;
  std::set<std::pair<std::uint64_t, std::size_t>> negative_;  // parameters: action's id, index
  std::uint64_t bytes_ = 0;                                   // bytes of all arrays
  // The state of loading: the action whose parameters expressions may use, or null; whether
  // expressions may use lookahead; whether the pipeline is egress.
  const Action* action_ = nullptr;
  bool ahead_ = false;
  bool in_egress_ = false;
};

}  // namespace nagi::p4
