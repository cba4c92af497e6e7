// SPDX-License-Identifier: Apache-2.0
#include "native/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace nagi::captures {

namespace {

// So small that most of the bytes are still in the processor's cache when they are parsed.
constexpr std::size_t read_bytes = 128 * 1024;
constexpr std::size_t buffer_bytes = ByteSource::longest_piece + read_bytes;
// 32 MiB; only `zstd --ultra` and `--long` make larger windows
constexpr int longest_window_log = 25;

bool is_zstd(const std::uint8_t* first) {
  const std::uint32_t magic =
      first[0] | first[1] << 8 | first[2] << 16 | static_cast<std::uint32_t>(first[3]) << 24;
  return magic == ZSTD_MAGICNUMBER ||
         (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

bool is_gzip(const std::uint8_t* first) {
  return first[0] == 0x1f && first[1] == 0x8b && first[2] == Z_DEFLATED;
}

}  // namespace

/// A decompressor between the file and the buffer of the ByteSource.
class ByteSource::Compression {
 public:
  Compression() : input_(read_bytes + 16) {}
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;
  virtual ~Compression() = default;

  /// Decompress up to `space` bytes. Return 0 at the end and after a failure.
  virtual std::size_t read(ByteSource& source, std::uint8_t* to, std::size_t space) = 0;

  /// Take over the first bytes of the file, which were already read.
  void set_input(const std::uint8_t* data, std::size_t size) {
    std::memcpy(input_.data(), data, size);
    filled_ = size;
  }

 protected:
  /// Read more of the file if all input has been used. Return false at the end of the file.
  bool refill(ByteSource& source) {
    if (at_ == filled_ && !ended_) {
      at_ = 0;
      filled_ = source.read_plain(input_.data(), input_.size());
      ended_ = filled_ == 0;
    }
    return at_ != filled_;
  }

  std::vector<std::uint8_t> input_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;

 private:
  bool ended_ = false;
};

class ByteSource::Zstd : public Compression {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, longest_window_log);
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }

  std::size_t read(ByteSource& source, std::uint8_t* to, std::size_t space) override {
    ZSTD_outBuffer out{to, space, 0};
    while (out.pos == 0 && source.failure_.empty()) {
      const bool exhausted = !refill(source);
      if (exhausted && !frame_open_) break;
      ZSTD_inBuffer in{input_.data(), filled_, at_};
      const std::size_t expected = ZSTD_decompressStream(stream_, &out, &in);
      at_ = in.pos;
      if (ZSTD_isError(expected)) {
        source.failure_ = std::string("damaged zstd data (") + ZSTD_getErrorName(expected) + ")";
      } else {
        frame_open_ = expected != 0;
        if (exhausted && out.pos == 0) source.failure_ = "zstd data is cut off";
      }
    }
    return out.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool frame_open_ = false;
};

class ByteSource::Gzip : public Compression {
 public:
  Gzip() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  std::size_t read(ByteSource& source, std::uint8_t* to, std::size_t space) override {
    stream_.next_out = to;
    stream_.avail_out = static_cast<uInt>(space);
    while (stream_.avail_out == space && source.failure_.empty()) {
      if (!refill(source)) {
        if (member_open_) source.failure_ = "gzip data is cut off";
        break;
      }
      if (!member_open_) {
        // Another member may follow. Other bytes are ignored as padding, as gzip does.
        if (members_ != 0 && input_[at_] != 0x1f) {
          at_ = filled_;
          continue;
        }
        inflateReset(&stream_);
        member_open_ = true;
      }
      stream_.next_in = input_.data() + at_;
      stream_.avail_in = static_cast<uInt>(filled_ - at_);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      at_ = filled_ - stream_.avail_in;
      if (result == Z_STREAM_END) {
        member_open_ = false;
        ++members_;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        source.failure_ = "damaged gzip data";
        if (stream_.msg != nullptr) source.failure_ += std::string(" (") + stream_.msg + ")";
      }
    }
    return space - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool member_open_ = false;
  std::size_t members_ = 0;
};

ByteSource::ByteSource(const std::string& path)
    : buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(buffer_bytes)) {
  at_ = end_ = buffer_.get();
  descriptor_ = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                            : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw CaptureError(std::string("cannot be read: ") + std::strerror(errno),
                       "give a capture made by tcpdump -w");
  }
  struct stat about{};
  if (fstat(descriptor_, &about) == 0 && S_ISDIR(about.st_mode)) {
    close(descriptor_);
    throw CaptureError("is a folder", "give a capture made by tcpdump -w");
  }
  posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  detect_compression();
}

ByteSource::ByteSource(const std::uint8_t* data, std::size_t size)
    : buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(buffer_bytes)),
      memory_(data),
      memory_left_(size) {
  at_ = end_ = buffer_.get();
  detect_compression();
}

ByteSource::~ByteSource() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ByteSource::detect_compression() {
  const std::uint8_t* first = peek(4);
  if (first == nullptr) return;
  if (is_zstd(first)) {
    compression_ = std::make_unique<Zstd>();
  } else if (is_gzip(first)) {
    compression_ = std::make_unique<Gzip>();
  } else {
    return;
  }
  compression_->set_input(at_, left());
  at_ = end_ = buffer_.get();
}

bool ByteSource::fill(std::size_t count) {
  if (count > longest_piece) return false;
  std::size_t available = left();
  base_ += static_cast<std::uint64_t>(at_ - buffer_.get());
  std::memmove(buffer_.get(), at_, available);
  at_ = buffer_.get();
  while (available < count) {
    const std::size_t added =
        read_some(buffer_.get() + available, std::min(read_bytes, buffer_bytes - available));
    if (added == 0) break;
    available += added;
  }
  end_ = buffer_.get() + available;
  return available >= count;
}

bool ByteSource::skip(std::uint64_t count) {
  while (count > left()) {
    count -= left();
    at_ = end_;
    if (!fill(1)) return false;
  }
  at_ += count;
  return true;
}

std::size_t ByteSource::read_some(std::uint8_t* to, std::size_t space) {
  return compression_ ? compression_->read(*this, to, space) : read_plain(to, space);
}

std::size_t ByteSource::read_plain(std::uint8_t* to, std::size_t space) {
  if (descriptor_ < 0) {
    const std::size_t count = std::min(space, memory_left_);
    if (count != 0) std::memcpy(to, memory_, count);
    memory_ += count;
    memory_left_ -= count;
    return count;
  }
  ssize_t count = 0;
  do {
    count = read(descriptor_, to, space);
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    failure_ = std::string("cannot be read: ") + std::strerror(errno);
    return 0;
  }
  return static_cast<std::size_t>(count);
}

}  // namespace nagi::captures
