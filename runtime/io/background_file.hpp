// SPDX-License-Identifier: Apache-2.0
//
// A file that is written by a thread of its own, so that whoever appends never waits for a disk.
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

/// What to do with what is appended while the disk is too far behind: packets that pass do not
/// wait, those of a file do.
enum class WhenBehind { lose, wait };

/// How a thread shares processors with others.
class Scheduling {
 public:
  /// That of the calling thread.
  Scheduling();
  /// Gives it to the calling thread. What the kernel refuses stays as it is.
  void apply() const;

 private:
  int policy_ = 0;
  sched_param parameters_{};
  cpu_set_t processors_{};
};

class BackgroundFile {
 public:
  /// Makes the file, or empties it. The thread that writes it has the scheduling of the one that
  /// calls this. Throws std::system_error.
  explicit BackgroundFile(const std::string& path, WhenBehind when_behind = WhenBehind::lose);
  BackgroundFile(const BackgroundFile&) = delete;
  BackgroundFile& operator=(const BackgroundFile&) = delete;
  /// Writes what is left.
  ~BackgroundFile();

  /// Starts the thread, with the rights that the caller has now; without, it starts once there is
  /// something to write.
  void start();
  /// Appends whole or not at all: if the disk is full, or too far behind and not waited for, what
  /// is appended is lost, and counted.
  void append(std::span<const std::byte> bytes);
  /// Writes what is left and waits until it is. Returns what went wrong with the disk; empty if
  /// nothing did.
  std::string close();
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  using Chunk = std::vector<std::byte>;

  void hand_over();
  void write_chunks();
  bool write(const Chunk& chunk);

  Descriptor file_;
  Scheduling scheduling_;  // of the thread
  WhenBehind when_behind_;
  Chunk filling_;
  std::uint64_t lost_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Chunk> full_;  // guarded by the mutex, as are all below
  std::vector<Chunk> empty_;
  std::size_t behind_ = 0;  // chunks handed over and not yet written
  std::string trouble_;
  bool closing_ = false;
  bool closed_ = false;  // the caller's, not guarded
  std::thread writer_;
};

}  // namespace nagi::io
