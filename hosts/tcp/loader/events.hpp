// SPDX-License-Identifier: Apache-2.0
//
// The events that a scheme reports about its connections (glue/event.h), as lines of JSON:
//
//   {"event": "opened", "scheme": ..., "name": ..., "parameters": {...}, "t_ns": ..., "realtime_ns": ...}
//   {"event": "three_duplicates", "t_ns": ..., "local_port": ..., "remote_port": ..., "una": ..., ...}
//   {"event": "lost", "t_ns": ..., "count": ...}
//   {"event": "closed", "t_ns": ..., "told": ..., "lost": ...}
//
// A line "lost" counts the events that were lost since the previous such line because the ring buffer was
// full. "told" is the number of events in the file.
//
// Times are CLOCK_MONOTONIC in nanoseconds. The first line also has CLOCK_REALTIME, for records that use
// that clock. Sequence numbers are those in the segments' headers; in a loss, `una` is the sequence number
// of the lost segment. A threshold is null until the window is first reduced.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "io/descriptor.hpp"

namespace nagi::tcp {

/// The file of events. It reads them from the kernel's ring buffer.
class EventFile {
 public:
  /// Create or truncate the file. Throws InputError if this is not possible.
  explicit EventFile(const std::string& path);

  /// Open the ring buffer with descriptor `ring`, and write the first line, with the keys of `opened` and the
  /// time. The scheme counts lost events in `lost`. Throws std::system_error.
  void listen(int ring, const volatile std::uint64_t* lost, nlohmann::json opened);
  /// Return a descriptor that is readable while the ring buffer holds events.
  [[nodiscard]] int descriptor() const;
  /// Write the events in the ring buffer to the file. Throws std::system_error if the file cannot be written.
  void write();
  /// Write the remaining events and the last line; return the number of lost events.
  std::uint64_t close();

 private:
  static int append_event(void* self, void* data, std::size_t size);
  void append(const nlohmann::json& line);
  void flush();

  std::string path_;
  io::Descriptor file_;
  std::unique_ptr<ring_buffer, decltype(&ring_buffer__free)> ring_;
  const volatile std::uint64_t* lost_ = nullptr;
  std::uint64_t lost_written_ = 0;
  std::uint64_t reported_ = 0;
  std::string text_;
};

}  // namespace nagi::tcp
