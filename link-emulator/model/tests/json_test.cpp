// SPDX-License-Identifier: Apache-2.0
#include "model/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nagi::model {
namespace {

using nlohmann::json;
using testing::HasSubstr;

DirectionConfig read(const char* text) {
  const json value = json::parse(text);
  return read_direction(ObjectReader(value, json::json_pointer("/link")));
}

struct Refusal {
  std::string where;
  std::string what;
  std::string cure;
};

Refusal refusal(const char* text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return {error.where().to_string(), error.what(), error.cure()};
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(ReadDirection, TakesEverythingItKnows) {
  const DirectionConfig config = read(R"({
    "rate_bps": 10000000, "overhead_bytes": 18, "delay_ns": 5000000, "queue": {"packets": 119},
    "loss": {"model": "poisson", "packet_loss_rate": 0.01, "packet_bytes": 1052, "at": "ingress"}})");
  EXPECT_EQ(config.rate, Bitrate{10'000'000});
  EXPECT_EQ(config.overhead, Bytes{18});
  EXPECT_EQ(config.delay, Duration{5'000'000});
  EXPECT_EQ(std::get<Packets>(config.queue), Packets{119});
  EXPECT_EQ(std::get<PoissonConfig>(config.loss).packet, Bytes{1052});
  EXPECT_EQ(config.loss_at, LossPlace::ingress);
}

TEST(ReadDirection, NeedsNothing) {
  const DirectionConfig config = read("{}");
  EXPECT_EQ(config.rate, std::nullopt);
  EXPECT_TRUE(std::holds_alternative<Unlimited>(config.queue));
  EXPECT_TRUE(std::holds_alternative<NoLossConfig>(config.loss));
}

TEST(ReadDirection, TurnsBdpsIntoPackets) {
  const DirectionConfig config = read(R"({"rate_bps": 100000000,
    "queue": {"bdp": 1, "base_rtt_ns": 100000000, "packet_bytes": 1052}})");
  EXPECT_EQ(std::get<Packets>(config.queue), Packets{1189});
  EXPECT_EQ(to_json(config)["queue"], (json{{"packets", 1189}}));
}

TEST(ReadDirection, ComesBackAsItWas) {
  for (const char* text : {
           R"({"delay_ns":0,"loss":{"at":"egress","model":"none"},"overhead_bytes":0})",
           R"({"delay_ns":7,"loss":{"at":"ingress","model":"bernoulli","probability":0.25},
               "overhead_bytes":4,"queue":{"bytes":3000},"rate_bps":1000})",
           R"({"delay_ns":7,"loss":{"at":"egress","model":"poisson","packet_bytes":1000,
               "packet_loss_rate":0.001},"overhead_bytes":0,"queue":{"packets":3},"rate_bps":9})",
       }) {
    EXPECT_EQ(to_json(read(text)), json::parse(text));
  }
}

TEST(ReadDirection, NamesWhatIsWrong) {
  EXPECT_EQ(refusal(R"({"rate": 1})").where, "/link/rate");
  EXPECT_THAT(refusal(R"({"rate": 1})").cure, HasSubstr("rate_bps"));
  EXPECT_EQ(refusal(R"({"rate_bps": 0})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"rate_bps": -5})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"rate_bps": "10 Mb/s"})").where, "/link/rate_bps");
  EXPECT_EQ(refusal(R"({"delay_ns": 1.5})").where, "/link/delay_ns");
  EXPECT_THAT(refusal(R"({"queue": {"packets": 5}})").what, HasSubstr("without a rate"));
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {"packets": 0}})").where, "/link/queue/packets");
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {}})").where, "/link/queue");
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "queue": {"packets": 1, "bytes": 1}})").where,
            "/link/queue/bytes");
  EXPECT_EQ(refusal(R"({"loss": {"model": "bernoulli", "probability": 1.01}})").where,
            "/link/loss/probability");
  EXPECT_EQ(refusal(R"({"loss": {"model": "bernoulli"}})").where, "/link/loss");
  EXPECT_EQ(refusal(R"({"loss": {"model": "rain"}})").where, "/link/loss/model");
  EXPECT_EQ(refusal(R"({"loss": {"model": "none", "at": "noon"}})").where, "/link/loss/at");
  EXPECT_THAT(
      refusal(R"({"loss": {"model": "poisson", "packet_loss_rate": 0.1, "packet_bytes": 9}})").what,
      HasSubstr("without a rate"));
  EXPECT_EQ(refusal(R"({"rate_bps": 1, "loss": {"model": "poisson", "packet_loss_rate": 1,
                        "packet_bytes": 1000}})")
                .where,
            "/link/loss/packet_loss_rate");
  EXPECT_EQ(refusal(R"([])").where, "/link");
}

}  // namespace
}  // namespace nagi::model
