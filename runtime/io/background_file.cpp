// SPDX-License-Identifier: Apache-2.0
#include "io/background_file.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace nagi::io {

namespace {
constexpr std::size_t chunk_bytes = 256 * 1024;
constexpr std::size_t max_behind = 128;  // chunks: 32 MiB
}  // namespace

Scheduling::Scheduling() : policy_(sched_getscheduler(0)) {
  sched_getparam(0, &parameters_);
  sched_getaffinity(0, sizeof processors_, &processors_);
}

void Scheduling::apply() const {
  sched_setscheduler(0, policy_, &parameters_);
  sched_setaffinity(0, sizeof processors_, &processors_);
}

BackgroundFile::BackgroundFile(const std::string& path, WhenBehind when_behind)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      when_behind_(when_behind) {
  if (file_.get() < 0) throw_errno("cannot write " + path);
  filling_.reserve(chunk_bytes);
}

void BackgroundFile::start() {
  if (!writer_.joinable()) writer_ = std::thread(&BackgroundFile::write_chunks, this);
}

BackgroundFile::~BackgroundFile() { close(); }

void BackgroundFile::append(std::span<const std::byte> bytes) {
  if (filling_.size() + bytes.size() > chunk_bytes) hand_over();
  if (filling_.size() + bytes.size() > chunk_bytes) {
    ++lost_;
    return;
  }
  filling_.insert(filling_.end(), bytes.begin(), bytes.end());
}

void BackgroundFile::hand_over() {
  start();
  std::unique_lock lock(mutex_);
  if (when_behind_ == WhenBehind::wait) {
    changed_.wait(lock, [this] { return behind_ < max_behind || !error_.empty(); });
  }
  if (behind_ >= max_behind || !error_.empty()) return;
  Chunk next;
  if (empty_.empty()) {
    next.reserve(chunk_bytes);
  } else {
    next = std::move(empty_.back());
    empty_.pop_back();
  }
  full_.push_back(std::exchange(filling_, std::move(next)));
  ++behind_;
  changed_.notify_one();
}

std::string BackgroundFile::close() {
  if (!closed_) {
    closed_ = true;
    start();
    {
      const std::lock_guard lock(mutex_);
      full_.push_back(std::move(filling_));
      ++behind_;
      closing_ = true;
      changed_.notify_one();
    }
    writer_.join();
  }
  return error_;
}

void BackgroundFile::write_chunks() {
  scheduling_.apply();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !full_.empty() || closing_; });
    if (full_.empty()) return;
    std::vector<Chunk> taken = std::exchange(full_, {});
    const bool working = error_.empty();
    lock.unlock();
    std::string error;
    for (Chunk& chunk : taken) {
      if (working && error.empty() && !write(chunk)) error = std::strerror(errno);
      chunk.clear();
    }
    lock.lock();
    if (!error.empty()) error_ = error;
    behind_ -= taken.size();
    for (Chunk& chunk : taken) empty_.push_back(std::move(chunk));
    changed_.notify_one();
  }
}

bool BackgroundFile::write(const Chunk& chunk) {
  std::size_t done = 0;
  while (done < chunk.size()) {
    const ssize_t written = ::write(file_.get(), chunk.data() + done, chunk.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace nagi::io
