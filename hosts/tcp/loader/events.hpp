// SPDX-License-Identifier: Apache-2.0
//
// What a scheme tells of its connections (glue/event.h), as lines of JSON:
//
//   {"event": "opened", "scheme": ..., "name": ..., "parameters": {...}, "t_ns": ..., "realtime_ns": ...}
//   {"event": "three_duplicates", "t_ns": ..., "local_port": ..., "remote_port": ..., "una": ..., ...}
//   {"event": "lost", "t_ns": ..., "count": ...}      events that found the ring full since the last line
//   {"event": "closed", "t_ns": ..., "told": ..., "lost": ...}
//
// Times are CLOCK_MONOTONIC in nanoseconds; the first line also has CLOCK_REALTIME, for records that use
// it. Sequence numbers are those in the segments' headers: in a loss, `una` is that of the segment that
// was lost. A threshold of null: none yet.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "io/descriptor.hpp"

namespace nagi::tcp {

class EventFile {
 public:
  /// Makes the file, or empties it. Throws InputError if it cannot.
  explicit EventFile(const std::string& path);

  /// Begins to listen to the ring buffer `ring`; `lost` counts the events that found it full.
  /// `opened`: what the first line has besides times. Throws std::system_error.
  void listen(int ring, const volatile std::uint64_t* lost, nlohmann::json opened);
  /// Becomes readable when there are events.
  [[nodiscard]] int descriptor() const;
  /// Writes down what has been told. Throws std::system_error when the disk takes no more.
  void write();
  /// Writes what is left and the last line; returns how many events were lost.
  std::uint64_t close();

 private:
  static int take(void* self, void* data, std::size_t size);
  void append(const nlohmann::json& line);
  void flush();

  std::string path_;
  io::Descriptor file_;
  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring_;
  const volatile std::uint64_t* lost_ = nullptr;
  std::uint64_t lost_written_ = 0;
  std::uint64_t told_ = 0;
  std::string text_;
};

}  // namespace nagi::tcp
