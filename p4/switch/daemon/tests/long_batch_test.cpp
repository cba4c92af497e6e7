// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/long_batch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frames.hpp"
#include "program/control.hpp"

namespace nagi::p4 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class LongBatchTest : public testing::Test {
 protected:
  /// Return the answer to a request that arrives in pieces of the given size. A packet passes after
  /// each piece.
  json ask(const std::string& request, std::size_t piece) {
    LongBatch batch(controller_);
    for (std::size_t at = 0; at < request.size(); at += piece) {
      const auto done = batch.take(std::string_view(request).substr(at, piece));
      seen_.push_back(passes(2));
      if (done) return json::parse(*done);
    }
    return json::parse(batch.finish());
  }
  json ask(const json& request, std::size_t piece = 7) { return ask(request.dump(), piece); }
  std::string refusal(const std::string& request) {
    const json answer = ask(request, 7);
    EXPECT_EQ(answer["ok"], false) << request;
    EXPECT_EQ(routes(), 0U) << request;
    EXPECT_FALSE(passes(2)) << request;
    return answer.value("error", "");
  }

  /// Return whether a packet to 10.0.NET.0/24 leaves.
  bool passes(int net) {
    const auto bytes = ipv4_frame(static_cast<std::uint8_t>(net), 100);
    const io::Frame frame{pool_.take(), 256, static_cast<std::uint32_t>(bytes.size())};
    std::memcpy(pool_.data(frame.slot) + frame.offset, bytes.data(), bytes.size());
    switch_.arrive(0, frame, switch_.now());
    const bool left = !switch_.departures().empty();
    for (const Departure& departure : switch_.departures()) {
      pool_.give_back(departure.frame.slot);
    }
    switch_.departures().clear();
    return left;
  }
  std::size_t routes() { return switch_.machine().control().table_size("ingress.ipv4_routes"); }

  io::FramePool pool_{2048};
  Switch switch_{two_ports(), load_program_file(edge_program), pool_, {}};
  Controller controller_{switch_, {[] {}, [](std::size_t) {}, {}, {}}};
  std::vector<bool> seen_;
};

TEST_F(LongBatchTest, IsDoneAtItsEndAndNotBefore) {
  json request = {{"op", "batch"}, {"operations", json::array()}};
  for (int net = 2; net < 60; ++net) request["operations"].push_back(route(net));
  request["operations"].push_back({{"op", "queue_set"}, {"port", 2}, {"rate_bps", 1000}});
  const json answer = ask(request);
  ASSERT_EQ(answer["ok"], true) << answer;
  ASSERT_EQ(answer["answers"].size(), 59U);
  EXPECT_EQ(answer["answers"][57]["handle"], 57);
  EXPECT_EQ(answer["answers"][58]["queue"]["rate_bps"], 1000);
  EXPECT_GT(seen_.size(), 1000U);
  EXPECT_THAT(seen_, testing::Each(false));
  EXPECT_EQ(routes(), 58U);
  EXPECT_EQ(switch_.queue(1).rates.bits, Bitrate{1000});
}

TEST_F(LongBatchTest, IsTheSameHoweverItIsCut) {
  const std::string text =
      R"( {"operations" : [ {"op":"table_add","table":"ingress.ipv4_routes",)"
      R"("match":["10.0.2.0/24"],"action":"ingress.forward","data":[2,)"
      R"("02:00:00:00:00:0a", "02:00:00:00:00:0b", 1500]} , {"op":"table_clear",)"
      R"("table":"ingress.ipv4_routes"}, )" +
      route(2).dump() + R"(], "op":"batch"} )";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    const json answer = ask(text, piece);
    ASSERT_EQ(answer["ok"], true) << answer << " in pieces of " << piece;
    EXPECT_EQ(answer["answers"].size(), 3U);
    EXPECT_EQ(routes(), 1U);
    ASSERT_EQ(controller_.answer({{"op", "table_clear"}, {"table", "ingress.ipv4_routes"}})["ok"],
              true);
  }
}

TEST_F(LongBatchTest, IsRefusedWhole) {
  const std::string one = route(2).dump();
  const auto batch = [](const std::string& operations) {
    return R"({"op":"batch","operations":[)" + operations + "]}";
  };
  EXPECT_THAT(refusal(batch(one + R"(,{"op":"fly"})")), HasSubstr("operations.1.op: unknown"));
  EXPECT_THAT(refusal(batch(one + R"(,{"op":"stop"})")), HasSubstr("in a batch"));
  EXPECT_THAT(refusal(batch(one + "," + one)), HasSubstr("operations.1: ingress.ipv4_routes"));
  EXPECT_THAT(refusal(batch(one + R"(,{"op"})")),
              HasSubstr("operations.1: control message:1: not"));
  EXPECT_THAT(refusal(batch(one + R"(,{"op")")), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(batch(one + ",")), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(batch("," + one)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(batch(one + R"(,{"op":"a","op":"b"})")), HasSubstr("key given twice"));
  EXPECT_THAT(refusal(batch(one) + "}"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(R"({"op":"batch","operations":[)" + one), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(R"({"op":"show","operations":[)" + one + "]}"), HasSubstr("has no such key"));
  EXPECT_THAT(refusal(R"({"op":"batch","also":1,"operations":[)" + one + "]}"),
              HasSubstr("unknown key also"));
  EXPECT_THAT(refusal(R"({"op":"batch","operations":[)" + one + R"(],"operations":[]})"),
              HasSubstr("key given twice"));
  // The failed batch does not affect the next one.
  EXPECT_EQ(ask({{"op", "batch"}, {"operations", {route(2)}}})["ok"], true);
  EXPECT_TRUE(passes(2));
}

TEST_F(LongBatchTest, LeavesNothingWhenItsControllerVanishes) {
  {
    LongBatch batch(controller_);
    batch.take(R"({"op":"batch","operations":[)" + route(2).dump() + "," + route(3).dump());
  }
  EXPECT_EQ(routes(), 0U);
  EXPECT_EQ(controller_.answer(route(2))["ok"], true);
  EXPECT_TRUE(passes(2));
}

TEST_F(LongBatchTest, AnswersOtherLongRequestsToo) {
  const std::string spaces(1000, ' ');
  EXPECT_EQ(ask(spaces + route(2).dump() + spaces, 64)["handle"], 0);
  EXPECT_EQ(ask({{"op", "batch"}, {"operations", json::array()}})["answers"], json::array());
  EXPECT_EQ(ask(std::string("[") + spaces + "]", 64)["ok"], false);
  EXPECT_EQ(ask(R"({"operations":"operations"})" + spaces, 64)["ok"], false);
}

}  // namespace
}  // namespace nagi::p4
