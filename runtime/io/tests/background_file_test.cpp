// SPDX-License-Identifier: Apache-2.0
#include "io/background_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace nagi::io {
namespace {

std::span<const std::byte> bytes_of(const std::uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

TEST(BackgroundFile, WritesEverythingInOrder) {
  const auto path =
      std::filesystem::temp_directory_path() / ("nagi-background-" + std::to_string(getpid()));
  constexpr std::uint64_t count = 500'000;  // 4 MB: many chunks
  {
    BackgroundFile file(path);
    for (std::uint64_t i = 0; i < count; ++i) file.append(bytes_of(i));
    EXPECT_EQ(file.close(), "");
    EXPECT_EQ(file.lost(), 0u);
  }
  std::ifstream written(path, std::ios::binary);
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    written.read(reinterpret_cast<char*>(&value), sizeof value);
    ASSERT_EQ(value, i);
  }
  EXPECT_EQ(written.peek(), std::ifstream::traits_type::eof());
  std::filesystem::remove(path);
}

TEST(BackgroundFile, SaysThatTheDiskIsFull) {
  BackgroundFile file("/dev/full");
  for (std::uint64_t i = 0; i < 100'000; ++i) file.append(bytes_of(i));
  EXPECT_EQ(file.close(), std::strerror(ENOSPC));
}

TEST(BackgroundFile, RefusesWhatItCannotMake) {
  EXPECT_THROW(BackgroundFile("/proc/nowhere/file"), std::system_error);
}

}  // namespace
}  // namespace nagi::io
