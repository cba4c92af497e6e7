// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nagi::p4 {
namespace {

using testing::HasSubstr;

SwitchConfig read(const std::string& ports, const std::string& more = "",
                  Medium medium = Medium::interfaces) {
  return read_config(
      runtime::JsonSource("s.json", "{\"schema_version\": 1,\n\"seed\": 3," + more +
                                        "\n\"pipeline\": \"p.json\",\n\"ports\": [" + ports + "]}"),
      medium);
}

std::string refusal(const std::string& ports, const std::string& more = "",
                    Medium medium = Medium::interfaces) {
  try {
    read(ports, more, medium);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SwitchConfigFile, IsRead) {
  const SwitchConfig config = read(
      R"({"number": 1, "interface": "p1", "rate_bps": 10000000, "rate_pps": null,
          "depth_packets": 100, "depth_bytes": 5000, "overhead_bytes": 4, "priorities": 3},
         {"number": 7, "interface": "p2"})",
      R"("entries": "e.jsonl", "io": "af_packet", "queue_interval_ns": 1000000,)");
  EXPECT_EQ(config.seed, 3U);
  EXPECT_EQ(config.entries, "e.jsonl");
  EXPECT_EQ(config.io, io::Choice::af_packet);
  EXPECT_EQ(config.queue_interval, std::chrono::milliseconds(1));
  ASSERT_EQ(config.ports.size(), 2U);
  const QueueConfig& queue = config.ports[0].queue;
  EXPECT_EQ(queue.rates.bits, Bitrate{10'000'000});
  EXPECT_FALSE(queue.rates.packets);
  EXPECT_EQ(queue.rates.overhead.count, 4U);
  EXPECT_EQ(queue.depth_packets, 100U);
  EXPECT_EQ(queue.depth_bytes, nagi::Bytes{5000});
  EXPECT_EQ(queue.priorities, 3U);
  EXPECT_EQ(config.ports[1].number, 7U);
  EXPECT_FALSE(config.ports[1].queue.rates.bits);
}

TEST(SwitchConfigFile, RefusesARateOfZero) {
  const std::string said = refusal("\n{\"number\": 1, \"interface\": \"p1\", \"rate_bps\": 0}");
  EXPECT_THAT(said, HasSubstr("s.json:5: ports.0.rate_bps: zero"));
  EXPECT_THAT(said, HasSubstr("null for no limit"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1", "rate_pps": 0})"), HasSubstr("rate_pps"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1", "depth_packets": 0})"),
              HasSubstr("depth_packets"));
}

TEST(SwitchConfigFile, RefusesWhatIsTwice) {
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1"}, {"number": 1, "interface": "p2"})"),
              HasSubstr("two ports have the number 1"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1"}, {"number": 2, "interface": "p1"})"),
              HasSubstr("p1 is used twice"));
}

TEST(SwitchConfigFile, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal(""), HasSubstr("no ports"));
  EXPECT_THAT(refusal(R"({"number": 511, "interface": "p1"})"), HasSubstr("from 0 to 510"));
  EXPECT_THAT(refusal(R"({"number": 1})"), HasSubstr("missing key interface"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1", "priorities": 9})"),
              HasSubstr("from 1 to 8"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1", "rate": 5})"),
              HasSubstr("unknown key rate"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1", "in": "x.pcap"})"), HasSubstr("replay"));
}

TEST(SwitchConfigFile, KnowsCapturesForReplay) {
  const SwitchConfig config = read(
      R"({"number": 1, "in": "i.pcap"}, {"number": 2, "out": "o.pcapng"})", "", Medium::captures);
  EXPECT_EQ(config.ports[0].in, "i.pcap");
  EXPECT_EQ(config.ports[1].out, "o.pcapng");
  EXPECT_THAT(refusal(R"({"number": 1})", "", Medium::captures), HasSubstr("without captures"));
  EXPECT_THAT(refusal(R"({"number": 1, "interface": "p1"})", "", Medium::captures),
              HasSubstr("takes packets from captures"));
  EXPECT_THAT(
      refusal(R"({"number": 1, "out": "o"}, {"number": 2, "out": "o"})", "", Medium::captures),
      HasSubstr("o is used twice"));
}

TEST(QueueOperation, ReplacesWhatIsGivenAndNullTakesAway) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{5};
  queue.depth_packets = 9;
  const nlohmann::json changes = {{"rate_pps", 7}, {"depth_packets", nullptr}};
  read_queue(ObjectReader(changes, nlohmann::json::json_pointer()), queue);
  EXPECT_EQ(queue.rates.bits, Bitrate{5});
  EXPECT_EQ(queue.rates.packets, 7U);
  EXPECT_FALSE(queue.depth_packets);
}

}  // namespace
}  // namespace nagi::p4
