// SPDX-License-Identifier: Apache-2.0
//
// The messages of libbpf and of the kernel's verifier about a BPF object that the program loads.
#pragma once

#include <bpf/libbpf.h>

#include <cstdarg>
#include <string>

namespace nagi::io {

/// Collects the messages of libbpf instead of writing them to stderr. Only one object may exist at
/// a time.
class BpfMessages {
 public:
  BpfMessages();
  BpfMessages(const BpfMessages&) = delete;
  BpfMessages& operator=(const BpfMessages&) = delete;
  ~BpfMessages() { libbpf_set_print(before_); }

  /// Return the last lines of the verifier's log, each after a line break, or an empty text.
  [[nodiscard]] static std::string verifier_log();
  /// Return the last line with a message, or an empty text.
  [[nodiscard]] static std::string last_line();

 private:
  static int collect(libbpf_print_level level, const char* format, va_list arguments);

  static inline std::string messages_;
  libbpf_print_fn_t before_;
};

}  // namespace nagi::io
