// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nagi::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* good = R"({
  "schema_version": 1,
  "seed": 18446744073709551615,
  "links": [
    {
      "name": "wired", "id": 0, "a": "eth0", "b": "eth1",
      "forward": {"rate_bps": 100000000},
      "backward": {}
    }
  ]
})";

Config read(const std::string& text) { return read_config(runtime::JsonSource("test.json", text)); }

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = good;
  text.replace(text.find(old), old.size(), replacement);
  return text;
}

TEST(Config, IsRead) {
  const Config config = read(good);
  EXPECT_EQ(config.seed, ~std::uint64_t{0});
  EXPECT_EQ(config.offloads, runtime::OffloadPolicy::switch_off);
  ASSERT_EQ(config.links.size(), 1u);
  EXPECT_EQ(config.links[0].b, "eth1");
  EXPECT_EQ(std::get<Bitrate>(config.links[0].forward.rate), Bitrate{100'000'000});
}

TEST(Config, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(refusal(with("rate_bps\": 100000000", "rate_bps\": 0")),
              AllOf(StartsWith("test.json:7: links.0.forward.rate_bps: "), HasSubstr("from 1")));
  EXPECT_THAT(refusal(with("\"seed\": 18446744073709551615,", "")),
              StartsWith("test.json:1: missing key seed"));
  EXPECT_THAT(refusal(with("\"id\": 0", "\"id\": 0, \"colour\": 3")),
              StartsWith("test.json:6: links.0.colour: unknown key"));
  EXPECT_THAT(refusal(with("\"b\": \"eth1\"", "\"b\": \"eth0\"")),
              StartsWith("test.json:6: links.0.b: interface eth0 is used twice"));
  EXPECT_THAT(refusal(with("\"schema_version\": 1", "\"schema_version\": 2")),
              StartsWith("test.json:2: schema_version: this nagi-link cannot read version 2"));
  EXPECT_THAT(refusal(with("\"seed\":", "\"offloads\": \"maybe\", \"seed\":")),
              StartsWith("test.json:3: offloads: unknown policy"));
}

TEST(Config, KeysGivenTwiceAreRefused) {
  EXPECT_THAT(refusal(with("\"seed\":", "\"seed\": 1,\n \"seed\":")),
              StartsWith("test.json:4: seed: key given twice"));
}

TEST(Config, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(refusal(with("\"wired\",", "\"wired\"")), StartsWith("test.json:6: not JSON"));
  EXPECT_THAT(refusal(""), StartsWith("test.json:1: not JSON"));
}

TEST(Config, SyntaxErrorsAreInOurWords) {
  EXPECT_EQ(refusal("{\"seed\": 1,\n \"links\" []}"),
            "test.json:2: not JSON: column 10: unexpected '['; expected ':'");
}

TEST(Config, DeepNestingIsRefused) {
  for (const int depth : {65, 100'000}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_THAT(refusal(deep), AllOf(StartsWith("test.json:1: column 65: "),
                                     HasSubstr("more than 64 levels deep; write it with fewer")));
    EXPECT_THAT(refusal(with("{\"rate_bps\": 100000000}", deep)),
                AllOf(StartsWith("test.json:7: "), HasSubstr("64 levels")));
  }
}

TEST(Config, AMisspeltKeyIsNamedBeforeTheOneThatIsMissing) {
  EXPECT_THAT(refusal(with("\"seed\"", "\"sead\"")),
              StartsWith("test.json:3: sead: unknown key sead; did you mean seed"));
  EXPECT_THAT(
      refusal(with("\"forward\"", "\"Forward\"")),
      StartsWith("test.json:7: links.0.Forward: unknown key Forward; did you mean forward"));
  EXPECT_THAT(refusal(with("\"backward\": {}", "\"backward\": {}, \"sockets\": {\"forwards\": 3}")),
              HasSubstr("links.0.sockets.forwards: unknown key forwards; did you mean forward"));
}

TEST(Config, NamesHaveNoControlCharacters) {
  for (const std::string bad : {"\\u0000", "\\n", "\\u001b[2J", "\\u009b", "\\u202e"}) {
    for (const char* name : {"wired", "eth0", "eth1"}) {
      const std::string said = refusal(with(name, name + bad));
      EXPECT_THAT(said, AllOf(StartsWith("test.json:6: links.0."), HasSubstr("control character")));
      EXPECT_EQ(said.find_first_of(std::string("\0\n\x1b", 3)), std::string::npos);
    }
  }
}

TEST(Config, LongValuesAreShortened) {
  const std::string name(10'000, 'x');
  EXPECT_LT(refusal(with("\"seed\"", "\"offloads\": \"" + name + "\", \"seed\"")).size(), 200u);
  EXPECT_LT(refusal(with("\"seed\"", "\"" + name + "\": 1, \"seed\"")).size(), 500u);
}

TEST(Config, AnEmptyListOfLinksIsRefused) {
  EXPECT_THAT(refusal(R"({"schema_version": 1, "seed": 1, "links": []})"), HasSubstr("no links"));
}

TEST(Config, AMissingFileIsRefused) {
  EXPECT_THROW(runtime::JsonSource::from_file("/proc/nowhere/config.json"), InputError);
}

std::string with(const std::string& keys) { return std::string("{") + keys + "," + (good + 1); }

TEST(ReadConfig, TakesHowItIsToRun) {
  const Config config = read(with(
      R"("io": "af_packet", "spin_ns": 0, "cpu": 1, "packets": "p.bin", "drops": "d.pcapng")"));
  EXPECT_EQ(config.io, io::Choice::af_packet);
  EXPECT_EQ(config.spin_ns, 0);
  EXPECT_EQ(config.cpu, 1);
  EXPECT_EQ(config.packets, "p.bin");
  EXPECT_EQ(config.drops, "d.pcapng");
  EXPECT_EQ(read(good).io, io::Choice::best);
  EXPECT_EQ(read(good).cpu, std::nullopt);
}

TEST(ReadConfig, RefusesToRunInWaysThereAreNot) {
  EXPECT_THAT(refusal(with(R"("io": "dpdk")")), AllOf(HasSubstr("io: "), HasSubstr("af_xdp")));
  EXPECT_THAT(refusal(with(R"("spin_ns": 2000000)")), HasSubstr("spin_ns"));
  EXPECT_THAT(refusal(with(R"("cpu": -1)")), HasSubstr("cpu"));
}

constexpr const char* good_medium = R"({
  "schema_version": 1, "seed": 1, "links": [],
  "media": [
    {
      "name": "air", "id": 0, "phy": "802.11b", "data_rate_bps": 11000000,
      "basic_rate_bps": 1000000, "cw_min": 31, "queue": {"packets": 50},
      "reach": {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550,
                "interference_m": 550, "capture_db": 10},
      "stations": [
        {"name": "n0", "interface": "e0", "mac": "02:00:00:00:00:01", "position_m": [0, 0]},
        {"name": "n1", "interface": "e1", "position_m": [200, 0], "trace": [[1000, 300, 0]]}
      ]
    }
  ]
})";

std::string medium_with(const std::string& old, const std::string& replacement) {
  std::string text = good_medium;
  text.replace(text.find(old), old.size(), replacement);
  return text;
}

TEST(Config, HasMedia) {
  const Config config = read(good_medium);
  ASSERT_EQ(config.media.size(), 1U);
  const MediumSettings& medium = config.media[0];
  EXPECT_EQ(medium.config.phy.table->name, "802.11b");
  EXPECT_EQ(medium.config.cw_max, 1023U);
  EXPECT_FALSE(medium.config.rts_threshold);
  EXPECT_EQ(medium.stations[0].mac, (MacAddress{2, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(medium.stations[1].mac);
  EXPECT_EQ(medium.config.stations[1].trace[0].to.x, 300);
  // What is printed can be read again, and is the same then.
  EXPECT_EQ(to_json(read(to_json(config).dump())), to_json(config));
}

TEST(Config, ErrorsOfMediaNameFileLineAndKey) {
  EXPECT_THAT(
      refusal(medium_with("11000000", "12000000")),
      AllOf(StartsWith("test.json:5: media.0.data_rate_bps: 802.11b has no rate of 12000000"),
            HasSubstr("1000000, 2000000, 5500000, 11000000")));
  EXPECT_THAT(refusal(medium_with("802.11b", "802.11ax")), HasSubstr("802.11a, 802.11b, 802.11g"));
  EXPECT_THAT(refusal(medium_with("\"carrier_sense_m\": 550", "\"carrier_sense_m\": 200")),
              HasSubstr("decoded farther away than they are sensed"));
  EXPECT_THAT(refusal(medium_with("\"cw_min\": 31", "\"cw_min\": 32")), HasSubstr("2^n - 1"));
  EXPECT_THAT(refusal(medium_with("\"interface\": \"e1\"", "\"interface\": \"e0\"")),
              HasSubstr("interface e0 is used twice"));
  EXPECT_THAT(refusal(medium_with("02:00:00:00:00:01", "02:00:00:00:00:1g")),
              HasSubstr("no MAC address"));
  EXPECT_THAT(refusal(medium_with("\"n1\"", "\"n0\"")), HasSubstr("two stations are called n0"));
  EXPECT_THAT(refusal(medium_with("[[1000, 300, 0]]", "[[1000, 300, 0], [1000, 0, 0]]")),
              HasSubstr("media.0.stations.1.trace.1"));
  EXPECT_THAT(refusal(medium_with("\"basic_rate_bps\": 1000000",
                                  "\"basic_rate_bps\": 1000000, \"preamble\": \"short\"")),
              HasSubstr("too slow for a short preamble"));
}

}  // namespace
}  // namespace nagi::daemon
