// SPDX-License-Identifier: Apache-2.0
//
// A file that a separate thread writes, so that callers need not wait for the disk.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::io {

/// The reaction if data is appended while the disk is too slow: lose the data (for live packets),
/// or wait (for packets that are read from a file).
enum class WhenBehind { lose, wait };

/// The scheduling of a thread.
class Scheduling {
 public:
  /// Read the scheduling of the calling thread.
  Scheduling();
  /// Apply the scheduling to the calling thread, as far as the kernel permits.
  void apply() const;

 private:
  int policy_ = 0;
  sched_param parameters_{};
  cpu_set_t processors_{};
};

class BackgroundFile {
 public:
  /// Create or truncate the file. The writing thread gets the scheduling of the calling thread.
  /// Throws std::system_error.
  explicit BackgroundFile(const std::string& path, WhenBehind when_behind = WhenBehind::lose);
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;
  /// Write the remaining data.
  ~BackgroundFile();

  /// Start the thread with the current privileges of the caller. Without this call, the thread
  /// starts with the first write.
  void start();
  /// Append all bytes or none. If the disk is full, or too slow for a file with WhenBehind::lose,
  /// the bytes are lost and the call is counted in lost().
  void append(std::span<const std::byte> bytes);
  /// Write the remaining data, and wait until it is written. Return the error of the disk, or an
  /// empty text.
  std::string close();
  /// Return the number of calls of append() whose bytes were lost.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  using Chunk = std::vector<std::byte>;

  void hand_over();
  void write_chunks();
  bool write(const Chunk& chunk);

  Descriptor file_;
  Scheduling scheduling_;  // scheduling of the thread
  WhenBehind when_behind_;
  Chunk filling_;
  std::uint64_t lost_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Chunk> full_;  // the mutex guards this and the following members
  std::vector<Chunk> empty_;
  std::size_t behind_ = 0;  // chunks handed over and not yet written
  std::string error_;
  bool closing_ = false;
  bool closed_ = false;  // used by the caller's thread only
  std::thread writer_;
};

}  // namespace nagi::io
