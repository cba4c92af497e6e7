// SPDX-License-Identifier: Apache-2.0
//
// What libbpf and the kernel's verifier say about a BPF object that is being loaded.
#pragma once

#include <bpf/libbpf.h>

#include <cstdarg>
#include <string>

namespace nagi::io {

/// Listens to libbpf, which would otherwise write to stderr, while this exists. One at a time.
class BpfMessages {
 public:
  BpfMessages();
  BpfMessages(const BpfMessages&) = delete;
  BpfMessages& operator=(const BpfMessages&) = delete;
  ~BpfMessages() { libbpf_set_print(before_); }

  /// The last lines of the verifier's log, each after a line break; empty if there is none.
  [[nodiscard]] static std::string verifier_log();
  /// The last line that says something; empty if there is none.
  [[nodiscard]] static std::string last_line();

 private:
  static int hear(libbpf_print_level level, const char* format, va_list arguments);

  static inline std::string said_;
  libbpf_print_fn_t before_;
};

}  // namespace nagi::io
