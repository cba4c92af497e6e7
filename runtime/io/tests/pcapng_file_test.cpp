// SPDX-License-Identifier: Apache-2.0
#include "io/pcapng_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/version.hpp"

namespace nagi::io {
namespace {

// Every byte is as draft-ietf-opsawg-pcapng specifies.
TEST(PcapngFile, IsPcapng) {
  const auto path =
      std::filesystem::temp_directory_path() / ("nagi-drops-" + std::to_string(getpid()));
  {
    PcapngFile log(path, "x", {"r.onward"}, PcapngFile::headers);
    const std::uint8_t frame[] = {1, 2, 3, 4, 5};
    log.add(0, 0x0102030405060708, frame, sizeof frame, "why");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string written((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(path);
  using namespace std::string_literals;
  std::string application = "x ";
  application += runtime::program_version;
  const auto characters = static_cast<char>(application.size());
  application.resize((application.size() + 3) / 4 * 4);
  const std::string length = std::string(1, static_cast<char>(36 + application.size())) + "\0\0\0"s;
  const std::string section = "\x0A\x0D\x0D\x0A"s + length + "\x4D\x3C\x2B\x1A\1\0\0\0"s +
                              std::string(8, '\xff') + "\4\0"s + characters + "\0"s + application +
                              "\0\0\0\0"s + length;
  const std::string interface =
      "\1\0\0\0\x2C\0\0\0\1\0\0\0\x80\0\0\0\2\0\x08\0r.onward\x09\0\1\0\x09\0\0\0\0\0\0\0\x2C\0\0\0"s;
  const std::string packet =
      "\6\0\0\0\x34\0\0\0\0\0\0\0\4\3\2\1\x08\7\6\5\5\0\0\0\5\0\0\0\1\2\3\4\5\0\0\0"
      "\1\0\3\0why\0\0\0\0\0\x34\0\0\0"s;
  EXPECT_EQ(written, section + interface + packet);
}

}  // namespace
}  // namespace nagi::io
