// SPDX-License-Identifier: Apache-2.0
//
// The file of a scheme: an eBPF object with one struct tcp_congestion_ops. Its type information says
// which parameters it has; before it is loaded, they are set in the copy that is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nagi::tcp {

/// A number that may be set before a scheme is loaded (NAGI_PARAMETER in glue/bpf.h).
struct Parameter {
  std::string name;
  std::uint32_t initial = 0;
  std::uint32_t minimum = 0;
  std::uint32_t maximum = 0;
  std::string unit;
  std::string meaning;
};

class Object {
 public:
  /// Throws InputError if `path` is not the object file of a congestion control.
  explicit Object(const std::string& path);
  /// The same of what is in the file `path`.
  Object(std::string path, std::string image);

  /// The scheme's name as its author gave it.
  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Whether it tells of events.
  [[nodiscard]] bool has_events() const;
  /// Where a variable is in its section, in bytes. Throws std::out_of_range.
  [[nodiscard]] std::size_t offset_of(const std::string& variable) const;

  /// The name under which the kernel will know it. Throws InputError if it is no name for a scheme.
  void set_name(const std::string& name);
  /// Sets a parameter from "name=value". Throws InputError if there is no such one, or it is out of
  /// its range.
  void set_parameter(const std::string& assignment);
  /// How many arguments the kernel gives cong_control; nothing for an object that does not ask.
  void set_cong_control_arguments(std::uint32_t arguments);
  /// Whether there is a variable of this name.
  [[nodiscard]] bool has(const std::string& variable) const {
    return variables_.contains(variable);
  }
  /// Says that somebody listens to its events.
  void set_listening();

  /// Parameters as they are now, by name.
  [[nodiscard]] std::map<std::string, std::uint32_t> values() const;
  /// The whole object, as changed.
  [[nodiscard]] const std::string& image() const { return image_; }

 private:
  struct Variable {
    std::size_t at = 0;      // in the image, if it is there
    std::size_t offset = 0;  // in its section
    std::size_t size = 0;
    std::string section;
    bool is_zero = false;  // and has no bytes in the image
  };

  [[nodiscard]] bool is_inside(std::uint64_t offset, std::uint64_t size) const;
  /// The bytes of a section of the image; empty if there is none.
  [[nodiscard]] std::string_view section(std::string_view wanted);
  void find_variables();
  void read_types();
  void accept_newer_section_name();
  [[nodiscard]] std::uint32_t word(std::size_t at) const;
  void set_word(std::size_t at, std::uint32_t value);

  std::string path_;
  std::string image_;
  std::string scheme_;
  std::map<std::string, Variable> variables_;
  std::vector<Parameter> parameters_;
  std::size_t name_at_ = 0;  // of .name and .flags in the image
  std::size_t flags_at_ = 0;
};

}  // namespace nagi::tcp
