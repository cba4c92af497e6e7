// SPDX-License-Identifier: Apache-2.0
#include "io/bpf_messages.hpp"

#include <cstdio>
#include <vector>

namespace nagi::io {

namespace {
constexpr std::size_t lines_shown = 6;
}  // namespace

BpfMessages::BpfMessages() : before_(libbpf_set_print(&BpfMessages::collect)) { messages_.clear(); }

int BpfMessages::collect(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char line[16384];
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  messages_ += line;
  return length;
}

std::string BpfMessages::verifier_log() {
  const std::size_t begin = messages_.find("BEGIN PROG LOAD LOG");
  if (begin == std::string::npos) return {};
  const std::size_t end = messages_.find("-- END PROG LOAD LOG", begin);
  const std::string log = messages_.substr(begin, end == std::string::npos ? end : end - begin);
  std::vector<std::string> lines;
  for (std::size_t at = log.find('\n'); at != std::string::npos && at + 1 < log.size();) {
    const std::size_t next = log.find('\n', at + 1);
    const std::string line = log.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    if (!line.empty() && !line.starts_with("processed ")) lines.push_back(line);
    at = next;
  }
  std::string last;
  for (std::size_t i = lines.size() > lines_shown ? lines.size() - lines_shown : 0;
       i < lines.size(); ++i) {
    last += "\n  " + lines[i];
  }
  return last;
}

std::string BpfMessages::last_line() {
  std::string messages = messages_;
  while (messages.ends_with('\n')) messages.pop_back();
  return messages.substr(messages.rfind('\n') + 1);
}

}  // namespace nagi::io
