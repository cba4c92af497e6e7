// SPDX-License-Identifier: Apache-2.0
//
// Reads a file or standard input as a stream of bytes through one buffer. Files compressed by zstd
// (RFC 8878) or gzip (RFC 1952) are decompressed. The memory in use is the buffer and the window of
// the decompressor, for a file of any length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace nagi::captures {

/// The error for a file that cannot be read: what() says what is wrong, cure() what to do.
class CaptureError : public std::runtime_error {
 public:
  CaptureError(const std::string& what, std::string cure)
      : std::runtime_error(what), cure_(std::move(cure)) {}
  [[nodiscard]] const std::string& cure() const { return cure_; }

 private:
  std::string cure_;
};

/// The bytes of a file, of standard input or of memory, in order.
class ByteSource {
 public:
  /// The largest number of bytes that peek() can return.
  static constexpr std::size_t longest_piece = 384 * 1024;

  /// Open a file; "-" is standard input. Throws CaptureError if the file cannot be opened or read.
  explicit ByteSource(const std::string& path);
  /// Read from memory, which must outlive this object. For tests.
  ByteSource(const std::uint8_t* data, std::size_t size);
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource();

  /// Return the next `count` bytes without consuming them, or null if fewer are left. The pointer
  /// is valid until the next call.
  const std::uint8_t* peek(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) >= count) [[likely]] {
      return at_;
    }
    return fill(count) ? at_ : nullptr;
  }
  /// Consume `count` bytes that peek() returned.
  void advance(std::size_t count) { at_ += count; }
  /// Consume any number of bytes. Return false if the file ends before.
  bool skip(std::uint64_t count);
  /// Return the number of bytes in the buffer; after peek() returned null, the last of the file.
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// Return the offset of the next byte in the (uncompressed) file.
  [[nodiscard]] std::uint64_t offset() const {
    return base_ + static_cast<std::uint64_t>(at_ - buffer_.get());
  }
  [[nodiscard]] bool compressed() const { return compression_ != nullptr; }
  /// Return the reason why reading stopped before the end of the file (a read error, or damaged
  /// compression), or an empty text.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  class Compression;
  class Zstd;
  class Gzip;

  void detect_compression();
  /// Read until the buffer has `count` bytes. Return false if the file ends before.
  bool fill(std::size_t count);
  /// Read up to `space` bytes of the file without decompression. Return 0 at its end.
  std::size_t read_plain(std::uint8_t* to, std::size_t space);
  /// Read up to `space` bytes, decompressed. Return 0 at the end.
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
