// SPDX-License-Identifier: Apache-2.0
//
// A file, or standard input, as a stream of bytes through one buffer, uncompressed on the way if
// zstd (RFC 8878) or gzip (RFC 1952) has compressed it. Memory is the buffer's and the window of
// the compression, however long the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace nagi::captures {

/// A file that is refused: what is wrong, and what would be right.
class CaptureError : public std::runtime_error {
 public:
  CaptureError(const std::string& what, std::string cure)
      : std::runtime_error(what), cure_(std::move(cure)) {}
  [[nodiscard]] const std::string& cure() const { return cure_; }

 private:
  std::string cure_;
};

class ByteSource {
 public:
  /// The most that can be looked at in one piece.
  static constexpr std::size_t longest_piece = 384 * 1024;

  /// Throws CaptureError if the file cannot be opened or read. "-" is standard input.
  explicit ByteSource(const std::string& path);
  /// Reads from memory, which must stay: for tests.
  ByteSource(const std::uint8_t* data, std::size_t size);
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  /// The next `count` bytes, which stay next; null if fewer are left. Valid until the next call.
  const std::uint8_t* peek(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) >= count) [[likely]] {
      return at_;
    }
    return fill(count) ? at_ : nullptr;
  }
  /// Goes on by bytes that were looked at.
  void advance(std::size_t count) { at_ += count; }
  /// Goes on by any number of bytes; false if the file ends before.
  bool skip(std::uint64_t count);
  /// Bytes that are left in one piece, after peek() said there are not enough.
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// Where the next byte is in the (uncompressed) file.
  [[nodiscard]] std::uint64_t offset() const {
    return base_ + static_cast<std::uint64_t>(at_ - buffer_.get());
  }
  [[nodiscard]] bool compressed() const { return compression_ != nullptr; }
  /// Why there are no more bytes, if that is not the end of the file: reading failed, or what is
  /// compressed is damaged.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  class Compression;
  class Zstd;
  class Gzip;

  void look_for_compression();
  bool fill(std::size_t count);
  std::size_t read_plain(std::uint8_t* to, std::size_t space);
  std::size_t read_some(std::uint8_t* to, std::size_t space);

  std::unique_ptr<std::uint8_t[]> buffer_;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::uint64_t base_ = 0;  // offset of the buffer's first byte
  int descriptor_ = -1;
  const std::uint8_t* memory_ = nullptr;
  std::size_t memory_left_ = 0;
  std::unique_ptr<Compression> compression_;
  std::string failure_;
};

}  // namespace nagi::captures
