// SPDX-License-Identifier: Apache-2.0
#include "daemon/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "control/json_source.hpp"
#include "daemon/packet_record.hpp"
#include "io/input_error.hpp"

namespace nagi::daemon {
namespace {

// 8 Mb/s, room for one: 1,000 bytes take 1 ms.
const char* const configuration = R"({"schema_version": 1, "seed": 1, "links": [
    {"name": "r", "id": 0, "a": "e0", "b": "e1",
     "forward": {"rate_bps": 8000000, "queue": {"packets": 1}, "delay_ns": 5000000,
                "mark": {"threshold_packets": 0, "weight": 1}},
     "backward": {"loss": {"model": "trace", "lost": [1], "length": 2}}}],
  "media": [
    {"name": "air", "id": 1, "phy": "802.11b", "data_rate_bps": 11000000, "basic_rate_bps": 1000000,
     "reach": {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550, "interference_m": 550},
     "stations": [{"name": "n0", "interface": "e2", "position_m": [0, 0]},
                  {"name": "n1", "interface": "e3", "position_m": [200, 0]}]}]})";

class Replay : public testing::Test {
 protected:
  Replay()
      : directory_(std::filesystem::temp_directory_path() /
                   ("nagi-replay-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(directory_);
  }
  ~Replay() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const char* name) const { return directory_ / name; }

  void record(const std::vector<PacketRecord>& records) const {
    std::ofstream file(path("recorded"), std::ios::binary);
    const PacketRecordHeader header;
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    for (const PacketRecord& each : records) {
      file.write(reinterpret_cast<const char*>(&each), sizeof each);
    }
  }
  [[nodiscard]] std::vector<PacketRecord> replayed() const {
    replay(read_config(runtime::JsonSource("test.json", configuration)), path("recorded"),
           path("again"));
    return read_records(path("again"));
  }

 private:
  std::filesystem::path directory_;
};

PacketRecord arrival(std::int64_t at, std::uint32_t index, std::uint8_t direction,
                     std::uint8_t ecn = 0) {
  PacketRecord record;
  record.arrived_ns = at;
  record.index = index;
  record.bytes = 1000;
  record.direction = direction;
  record.ecn = ecn;
  return record;
}

TEST_F(Replay, RefusesArrivalsThatThereAreNot) {
  const std::vector<PacketRecord> damaged = {
      {.arrived_ns = std::numeric_limits<std::int64_t>::min()},
      {.arrived_ns = std::numeric_limits<std::int64_t>::max()},
      {.arrived_ns = -1},
      {.ecn = 4},
      {.next_hop = 1},   // on a link
      {.direction = 2},  // on a medium, for nobody that there is
      {.direction = 2, .next_hop = 3}};
  for (const PacketRecord& each : damaged) {
    record({each});
    EXPECT_THROW(replayed(), InputError) << each.arrived_ns << " " << each.next_hop;
  }
}

TEST_F(Replay, GivesArrivalsToTheModelInTheirOrder) {
  // As recorded: out of order. Packet 2 finds one in transmission and one waiting.
  record(
      {arrival(10, 2, 0), arrival(0, 0, 0), arrival(7, 0, 1), arrival(10, 1, 0), arrival(8, 1, 1)});
  const auto again = replayed();
  ASSERT_EQ(again.size(), 5u);
  EXPECT_EQ(again[0].left_ns, 6'000'000);
  EXPECT_EQ(again[0].fate, 0);
  EXPECT_EQ(again[1].left_ns, 7'000'000);
  EXPECT_EQ(again[2].index, 2u);
  EXPECT_EQ(again[2].left_ns, 10);
  EXPECT_EQ(again[2].fate, 1);
  EXPECT_EQ(again[3].fate, 0);
  EXPECT_EQ(again[4].fate, 2);
}

TEST_F(Replay, MarksAgain) {
  PacketRecord marked = arrival(1'000'001, 2, 0, 2);
  marked.flags = marked_flag;
  record({arrival(0, 0, 0, 2), arrival(1, 1, 0, 2), marked});
  const auto again = replayed();
  // The third finds one in transmission, none waiting; what the record says of it is not believed.
  for (const PacketRecord& each : again) EXPECT_EQ(each.flags, 0);
}

TEST_F(Replay, GivesAMediumTheArrivalsOfAllItsStations) {
  // Directions 2 and 3. DATA of 1,000 bytes takes 946 us, with its ACK 1,260.
  PacketRecord there = arrival(100'000, 0, 2);
  there.next_hop = 2;  // station 1
  PacketRecord back = arrival(10'000'000, 0, 3);
  back.next_hop = 1;
  PacketRecord lost = arrival(20'000'000, 1, 3);
  lost.next_hop = 0xFFFE;  // nobody
  record({back, there, lost});
  const auto again = replayed();
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].left_ns, 100'000 + 946'000);
  EXPECT_EQ(again[1].left_ns, 10'946'000);
  EXPECT_EQ(again[1].fate, 0);
  EXPECT_EQ(again[2].fate, 5);
}

TEST_F(Replay, RefusesWhatIsNoRecord) {
  const auto refusal = [this] {
    try {
      static_cast<void>(replayed());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(), testing::HasSubstr("not a record of packets"));
  record({arrival(0, 0, 7)});
  EXPECT_THAT(refusal(), testing::HasSubstr("direction 7"));
  record({arrival(0, 0, 0)});
  std::filesystem::resize_file(path("recorded"), 16 + 39);
  EXPECT_THAT(refusal(), testing::HasSubstr("the last record is incomplete"));
}

}  // namespace
}  // namespace nagi::daemon
