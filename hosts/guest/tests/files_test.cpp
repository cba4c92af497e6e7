// SPDX-License-Identifier: Apache-2.0
//
// files.cpp in this program's own calls: what a guest sees of directories does not follow from how
// the machine's file system keeps them.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::uint64_t number_of(const fs::path& path) {
  struct statx status{};
  EXPECT_EQ(statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status), 0);
  return status.stx_ino;
}

struct Seen {
  std::string name;
  std::uint64_t number;
  std::int64_t place;
};

/// As hostfs reads: from a place on, `most` entries at once.
std::vector<Seen> read_from(const fs::path& directory, std::int64_t place, std::size_t most) {
  DIR* opened = opendir(directory.c_str());
  EXPECT_NE(opened, nullptr);
  seekdir(opened, place);
  std::vector<Seen> found;
  while (found.size() < most) {
    const dirent64* entry = readdir64(opened);
    if (entry == nullptr) break;
    found.push_back({entry->d_name, entry->d_ino, entry->d_off});
  }
  closedir(opened);
  return found;
}

class Files : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = testing::TempDir() + "nagi-files-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top = name;
    with_files("never seen", 50, 3);  // and of new inodes: no other file is gone yet
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(std::system(("rm -rf '" + top.string() + "'").c_str()), 0);
  }

  /// A directory with `count` files, made in an order that `seed` gives.
  static fs::path with_files(const std::string& name, int count, unsigned seed) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 draws(seed);
    std::shuffle(order.begin(), order.end(), draws);
    fs::path made = top / name;
    EXPECT_EQ(::mkdir(made.c_str(), 0755), 0);
    for (const int each : order) std::ofstream(made / ("file" + std::to_string(each)));
    return made;
  }

  static inline fs::path top;
};

TEST_F(Files, AreInAnOrderThatFollowsFromTheirNames) {
  const auto one = read_from(with_files("one", 200, 1), 0, 1000);
  const auto other = read_from(with_files("other", 200, 2), 0, 1000);
  ASSERT_EQ(one.size(), 202);  // with . and ..
  ASSERT_EQ(other.size(), 202);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].name, other[i].name);
}

TEST_F(Files, AreNumberedInTheOrderInWhichTheyAreSeen) {
  const fs::path directory = top / "never seen";
  std::uint64_t last = 0;
  for (const Seen& each : read_from(directory, 0, 1000)) {
    EXPECT_EQ(number_of(directory / each.name), each.number);
    if (each.name == "." || each.name == "..") continue;  // their numbers are older
    EXPECT_GT(each.number, last);
    last = each.number;
  }
}

TEST_F(Files, ThatAreNewHaveNumbersOfTheirOwn) {
  // A file system may give the next file the inode of the one that is gone.
  std::set<std::uint64_t> numbers;
  const fs::path file = top / "file";
  for (int i = 0; i < 20; ++i) {
    const int opened = open64(file.c_str(), O_CREAT | O_RDWR, 0644);
    ASSERT_GE(opened, 0);
    close(opened);
    EXPECT_TRUE(numbers.insert(number_of(file)).second);
    ASSERT_EQ(unlink(file.c_str()), 0);
  }
}

TEST_F(Files, AreAllReadWhileSomeAreRemoved) {
  const fs::path directory = with_files("many", 1000, 4);
  std::map<std::string, int> seen;
  std::int64_t place = 0;
  while (true) {
    const auto some = read_from(directory, place, 100);
    if (some.empty()) break;
    place = some.back().place;
    for (const Seen& each : some) {
      ++seen[each.name];
      if (each.name[0] == 'f') unlink((directory / each.name).c_str());
    }
  }
  EXPECT_EQ(seen.size(), 1002);
  for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
}

}  // namespace
