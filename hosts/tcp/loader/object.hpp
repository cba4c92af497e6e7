// SPDX-License-Identifier: Apache-2.0
//
// The object file of a scheme: an eBPF object with one struct tcp_congestion_ops. The type information of the object
// lists the scheme's parameters. nagi-tcp sets the parameters in a copy of the file in memory, and loads this copy.
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

/// An eBPF object with one congestion control, in memory.
class Object {
 public:
  /// Read the file `path`. Throws InputError if it is not the object file of a congestion control.
  explicit Object(const std::string& path);
  /// Read the object from `image`, the content of the file `path`. Throws InputError as above.
  Object(std::string path, std::string image);

  /// The scheme's name in the object file.
  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Return whether the scheme reports events.
  [[nodiscard]] bool has_events() const;
  /// Return the offset of a variable in its section, in bytes. Throws std::out_of_range if there is no such
  /// variable.
  [[nodiscard]] std::size_t offset_of(const std::string& variable) const;

  /// Set the name under which the kernel registers the scheme. Throws InputError if the kernel does not allow
  /// the name.
  void set_name(const std::string& name);
  /// Set a parameter from "name=value". Throws InputError if there is no such parameter or the value is out of
  /// its range.
  void set_parameter(const std::string& assignment);
  /// Set the number of arguments that the kernel passes to cong_control. Does nothing if the object does not use
  /// the number.
  void set_cong_control_arguments(std::uint32_t arguments);
  /// Return whether there is a variable of this name.
  [[nodiscard]] bool has_variable(const std::string& variable) const {
    return variables_.contains(variable);
  }
  /// Make the scheme report events.
  void set_listening();

  /// Return the current values of the parameters, by name.
  [[nodiscard]] std::map<std::string, std::uint32_t> values() const;
  /// The whole object with all changes.
  [[nodiscard]] const std::string& image() const { return image_; }

 private:
  struct Variable {
    std::size_t at = 0;      // offset in the image, unless is_zero
    std::size_t offset = 0;  // offset in its section
    std::size_t size = 0;
    std::string section;
    bool is_zero = false;  // the variable begins at zero and has no bytes in the image
  };

  [[nodiscard]] bool is_inside(std::uint64_t offset, std::uint64_t size) const;
  /// Return the content of a section of the image, or an empty view if there is no such section.
  [[nodiscard]] std::string_view find_section(std::string_view section_name);
  void find_variables();
  void read_types();
  void accept_newer_section_name();
  [[nodiscard]] std::uint32_t read_word(std::size_t at) const;
  void set_word(std::size_t at, std::uint32_t value);

  std::string path_;
  std::string image_;
  std::string scheme_;
  std::map<std::string, Variable> variables_;
  std::vector<Parameter> parameters_;
  std::size_t name_at_ = 0;   // offset of the scheme's .name in the image
  std::size_t flags_at_ = 0;  // offset of the scheme's .flags in the image; 0 if it has none
};

}  // namespace nagi::tcp
