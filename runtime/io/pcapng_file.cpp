// SPDX-License-Identifier: Apache-2.0
#include "io/pcapng_file.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/version.hpp"

namespace nagi::io {

namespace {

static_assert(std::endian::native == std::endian::little);

enum BlockType : std::uint32_t {
  section_header = 0x0A0D0D0A,
  interface_description = 1,
  enhanced_packet = 6,
};
enum OptionCode : std::uint16_t {
  end_of_options = 0,
  comment = 1,
  interface_name = 2,    // option of an interface description
  user_application = 4,  // option of a section header
  time_resolution = 9,   // option of an interface description: digits after the decimal point
};

/// A block that is assembled in `bytes`.
class Block {
 public:
  Block(std::vector<std::byte>& bytes, BlockType type) : bytes_(bytes) {
    bytes_.clear();
    number<std::uint32_t>(type);
    number<std::uint32_t>(0);  // the length, which finish() sets
  }

  template <class Number>
  void number(Number value) {
    put(&value, sizeof value);
  }
  void data(const void* data, std::size_t length) {
    put(data, length);
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }
  void option(OptionCode code, std::string_view value) {
    number<std::uint16_t>(code);
    number(static_cast<std::uint16_t>(value.size()));
    data(value.data(), value.size());
  }
  std::span<const std::byte> finish() {
    option(end_of_options, {});
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    number(length);
    std::memcpy(&bytes_[sizeof(std::uint32_t)], &length, sizeof length);
    return bytes_;
  }

 private:
  void put(const void* data, std::size_t length) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + length);
  }

  std::vector<std::byte>& bytes_;
};

}  // namespace

PcapngFile::PcapngFile(const std::string& path, std::string_view program,
                       const std::vector<std::string>& interfaces, std::uint32_t snap_bytes,
                       io::WhenBehind when_behind, std::uint16_t link_type)
    : file_(path, when_behind), snap_bytes_(snap_bytes) {
  Block header(block_, section_header);
  header.number<std::uint32_t>(0x1A2B3C4D);  // byte-order magic
  header.number<std::uint16_t>(1);           // version 1.0
  header.number<std::uint16_t>(0);
  header.number<std::int64_t>(-1);  // length of the section: unspecified
  std::string application(program);
  application += ' ';
  application += runtime::program_version;
  header.option(user_application, application);
  file_.append(header.finish());
  for (const std::string& name : interfaces) {
    Block interface(block_, interface_description);
    interface.number(link_type);
    interface.number<std::uint16_t>(0);
    interface.number(snap_bytes);
    interface.option(interface_name, name);
    interface.option(time_resolution, "\x09");
    file_.append(interface.finish());
  }
}

void PcapngFile::add(std::uint32_t interface, std::int64_t realtime_ns, const std::uint8_t* frame,
                     std::uint32_t length, std::string_view comment_text) {
  const auto stamp = static_cast<std::uint64_t>(realtime_ns);
  const std::uint32_t stored_bytes = std::min(length, snap_bytes_);
  Block packet(block_, enhanced_packet);
  packet.number(interface);
  packet.number(static_cast<std::uint32_t>(stamp >> 32));
  packet.number(static_cast<std::uint32_t>(stamp));
  packet.number(stored_bytes);
  packet.number(length);
  packet.data(frame, stored_bytes);
  if (!comment_text.empty()) packet.option(comment, comment_text);
  file_.append(packet.finish());
}

}  // namespace nagi::io
