// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/controller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "control/control_socket.hpp"
#include "frames.hpp"
#include "switch/daemon/operation_values.hpp"

namespace nagi::p4 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ControllerTest : public testing::Test {
 protected:
  ControllerTest()
      : switch_(two_ports(), load_program_file(edge_program), pool_, {}),
        controller_(switch_, {[] {}, [this](std::size_t port) { changed_.push_back(port); },
                              [] { return json::array({"a digest"}); },
                              [] { return json{{"an", "account"}}; }}) {}

  json ask(const std::string& line) {
    return json::parse(
        runtime::answer(line, [this](const json& request) { return controller_.answer(request); }));
  }
  json ask(const json& request) { return ask(request.dump()); }
  std::string refusal(const json& request) {
    const json answer = ask(request);
    EXPECT_EQ(answer["ok"], false) << answer;
    return answer.value("error", "");
  }
  std::size_t routes() { return switch_.machine().control().table_size("ingress.ipv4_routes"); }

  io::FramePool pool_{2048};
  Switch switch_;
  std::vector<std::size_t> changed_;
  Controller controller_;
};

TEST_F(ControllerTest, AddsAndDeletesEntries) {
  const json added = ask(route(2));
  ASSERT_EQ(added["ok"], true) << added;
  EXPECT_EQ(routes(), 1U);
  EXPECT_EQ(ask({{"op", "table_delete"},
                 {"table", "ingress.ipv4_routes"},
                 {"handle", added["handle"]}})["ok"],
            true);
  EXPECT_EQ(routes(), 0U);
}

TEST_F(ControllerTest, TakesNumbersInAllTheirForms) {
  for (const json& match : {json("10.1.0.0/16"), json{{"value", "10.2.0.0"}, {"prefix", 16}},
                            json{{"value", "0x0a030000"}, {"prefix", 16}},
                            json{{"value", 168034304}, {"prefix", 16}}}) {
    json request = route(2);
    request["match"] = {match};
    EXPECT_EQ(ask(request)["ok"], true) << match;
  }
  json request = route(3);
  request["data"] = {"0x3", 1, "0x02000000000b", 1500};
  EXPECT_EQ(ask(request)["ok"], true);
  EXPECT_EQ(routes(), 5U);
}

TEST_F(ControllerTest, RefusesWhatDoesNotFitAndChangesNothing) {
  json request = route(2);
  request["match"] = {"2001:db8::/32"};
  EXPECT_THAT(refusal(request), HasSubstr("ingress.ipv4_routes"));
  request["match"] = {"10.0.0.0/33"};
  refusal(request);
  request["match"] = {"elsewhere"};
  EXPECT_THAT(refusal(request), HasSubstr("match.0: no number: \"elsewhere\""));
  request["match"] = {-1};
  EXPECT_THAT(refusal(request), HasSubstr("match.0: no number"));
  request = route(2);
  request["data"] = {2, "02:00:00:00:00:0a"};
  refusal(request);
  request["data"] = {512, "02:00:00:00:00:0a", "02:00:00:00:00:0b"};
  refusal(request);  // nine bits
  request = route(2);
  request["priorty"] = 1;
  EXPECT_THAT(refusal(request), HasSubstr("unknown key priorty"));
  request = route(2);
  request["table"] = "ingress.elsewhere";
  EXPECT_THAT(refusal(request), HasSubstr("ingress.elsewhere"));
  EXPECT_THAT(refusal({{"op", "table_ad"}}), HasSubstr("one of counter_read"));
  EXPECT_THAT(refusal({{"up", 1}}), HasSubstr("unknown key up; did you mean op"));
  EXPECT_EQ(ask(std::string("{\"op\": "))["ok"], false);
  EXPECT_EQ(routes(), 0U);
}

TEST_F(ControllerTest, ABatchIsDoneWhole) {
  const json answer = ask({{"op", "batch"},
                           {"operations",
                            {route(1),
                             {{"op", "queue_set"}, {"port", 2}, {"rate_bps", 1000}},
                             {{"op", "queue_set"}, {"port", 2}, {"depth_packets", 5}}}}});
  ASSERT_EQ(answer["ok"], true) << answer;
  EXPECT_EQ(answer["answers"].size(), 3U);
  EXPECT_EQ(answer["answers"][2]["queue"]["rate_bps"], 1000);
  EXPECT_EQ(routes(), 1U);
  EXPECT_EQ(switch_.queue(1).rates.bits, Bitrate{1000});
  EXPECT_EQ(switch_.queue(1).depth_packets, 5U);
}

TEST_F(ControllerTest, ABatchIsDoneWholeOrNotAtAll) {
  const json request = {
      {"op", "batch"},
      {"operations",
       {route(1),
        {{"op", "queue_set"}, {"port", 2}, {"rate_bps", 1000}},
        {{"op", "register_write"}, {"register", "egress.is_bad"}, {"index", 1}, {"value", 1}},
        {{"op", "table_delete"}, {"table", "ingress.ipv4_routes"}, {"handle", 99}}}}};
  EXPECT_THAT(refusal(request), HasSubstr("operations.3: "));
  EXPECT_EQ(routes(), 0U);
  EXPECT_FALSE(switch_.queue(1).rates.bits);
  EXPECT_TRUE(changed_.empty());
  const json cells = ask({{"op", "register_read"}, {"register", "egress.is_bad"}, {"index", 1}});
  EXPECT_EQ(cells["values"], json::array({0}));
  // One operation that is invalid, one that is not permitted in a batch.
  json other = request;
  other["operations"][3] = {{"op", "table_clear"}};
  EXPECT_THAT(refusal(other), HasSubstr("operations.3: missing key table"));
  other["operations"][3] = {{"op", "stop"}};
  EXPECT_THAT(refusal(other), HasSubstr("in a batch"));
  EXPECT_EQ(routes(), 0U);
  EXPECT_FALSE(controller_.stopped());
}

TEST_F(ControllerTest, ChangesQueues) {
  const json answer = ask({{"op", "queue_set"}, {"port", 2}, {"rate_bps", 4000}});
  EXPECT_EQ(answer["queue"]["rate_bps"], 4000) << answer;
  EXPECT_EQ(changed_, (std::vector<std::size_t>{1}));
  EXPECT_THAT(refusal({{"op", "queue_set"}, {"port", 2}, {"rate_bps", 0}}), HasSubstr("zero"));
  EXPECT_THAT(refusal({{"op", "queue_set"}, {"port", 3}}), HasSubstr("there is no port 3"));
  EXPECT_THAT(refusal({{"op", "queue_set"}, {"port", 2}, {"priorities", 2}}),
              HasSubstr("unknown key"));
  EXPECT_EQ(switch_.queue(1).rates.bits, Bitrate{4000});
}

TEST_F(ControllerTest, ShowsAndStops) {
  EXPECT_EQ(ask({{"op", "show"}})["account"]["an"], "account");
  EXPECT_EQ(ask({{"op", "digests"}})["digests"][0], "a digest");
  EXPECT_FALSE(controller_.stopped());
  EXPECT_EQ(ask({{"op", "stop"}})["ok"], true);
  EXPECT_TRUE(controller_.stopped());
}

TEST_F(ControllerTest, AnotherProgramTakesThePlaceOrTheOldOneStays) {
  ask(route(1));
  EXPECT_THAT(refusal({{"op", "pipeline_set"}, {"program", "{"}, {"name", "mine.json"}}),
              HasSubstr("mine.json:1: "));
  EXPECT_THAT(refusal({{"op", "pipeline_set"}, {"program", json::object()}}),
              HasSubstr("as a string"));
  EXPECT_EQ(routes(), 1U);
  const json read = ask({{"op", "pipeline_read"}});
  EXPECT_EQ(read["name"], edge_program);
  const std::string text = read["program"];
  EXPECT_EQ(ask({{"op", "pipeline_check"}, {"program", text}})["ok"], true);
  EXPECT_EQ(routes(), 1U);
  EXPECT_EQ(ask({{"op", "pipeline_set"}, {"program", text}, {"name", "again"}})["ok"], true);
  EXPECT_EQ(routes(), 0U);
  EXPECT_EQ(ask({{"op", "pipeline_read"}})["name"], "again");
  EXPECT_THAT(refusal({{"op", "batch"}, {"operations", {{{"op", "pipeline_read"}}}}}),
              HasSubstr("pipeline_read is not possible in a batch"));
}

TEST_F(ControllerTest, NamesEntriesByTheirKeys) {
  ask(route(2));
  const json named = {{"table", "ingress.ipv4_routes"}, {"match", {"10.0.2.0/24"}}};
  json request = named;
  request["op"] = "table_read";
  const json read = ask(request);
  ASSERT_EQ(read["ok"], true) << read;
  EXPECT_EQ(read["entries"][0]["action"], "ingress.forward");
  EXPECT_EQ(read["entries"][0]["match"][0], (json{{"value", 0x0a000200}, {"prefix", 24}}));
  // Entries that were read back can be added again.
  request = read["entries"][0];
  const json added = {{"op", "table_add"},
                      {"table", "ingress.ipv4_routes"},
                      {"match", request["match"]},
                      {"action", request["action"]},
                      {"data", request["data"]}};
  const json again = ask(added);
  EXPECT_EQ(again["ok"], false);
  EXPECT_EQ(again["code"], "already_exists");
  request = named;
  request["op"] = "table_delete";
  request["handle"] = 0;
  EXPECT_THAT(refusal(request), HasSubstr("by handle and by key"));
  request.erase("handle");
  EXPECT_EQ(ask(request)["ok"], true);
  EXPECT_EQ(ask(request)["code"], "not_found");
  EXPECT_EQ(ask(added)["ok"], true);
}

TEST_F(ControllerTest, PacketsOfTheControllerNeedItsPort) {
  const json answer = ask({{"op", "packet_out"}, {"bytes", "00"}});
  EXPECT_EQ(answer["code"], "failed_precondition") << answer;
  EXPECT_THAT(refusal({{"op", "packet_out"}, {"bytes", "0"}}), HasSubstr("two hexadecimal digits"));
  EXPECT_THAT(refusal({{"op", "packet_out"}, {"bytes", "zz"}}), HasSubstr("bytes: no bytes"));
  const json events = ask({{"op", "events"}});
  EXPECT_EQ(events["digests"], json::array({"a digest"}));
  EXPECT_EQ(events["packets"], json::array());
}

TEST_F(ControllerTest, LoadsAFileWholeOrNamesTheLine) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("nagi-entries-" + std::to_string(getpid())))
          .string();
  const auto load = [&](const std::string& last) -> std::string {
    std::ofstream(path) << route(1).dump() << "\n\n" << last << "\n";
    try {
      controller_.load(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  json bad = route(2);
  bad["match"] = {"10.0.0.0/8", 1};
  EXPECT_THAT(load(bad.dump()), HasSubstr(path + ":3: "));
  EXPECT_THAT(load("{\"op\": 3}"), HasSubstr(path + ":3: op: expected text"));
  EXPECT_THAT(load("{\"op\""), HasSubstr(path + ":3: not JSON"));
  EXPECT_THAT(load("{\"op\": \"stop\"}"), HasSubstr(path + ":3: op: "));
  EXPECT_EQ(routes(), 0U);
  EXPECT_EQ(load(route(2).dump()), "");
  EXPECT_EQ(routes(), 2U);
  std::filesystem::remove(path);
  EXPECT_THROW(controller_.load(path), InputError);
}

TEST(ProgramNumber, IsAnIntegerOrHexadecimal) {
  EXPECT_EQ(number_to_json({}), 0);
  EXPECT_EQ(number_to_json({0, 0, 1, 2}), 258);
  EXPECT_EQ(number_to_json({0, 255, 255, 255, 255, 255, 255, 255, 255}), 0xffff'ffff'ffff'ffffU);
  EXPECT_EQ(number_to_json({1, 0, 0, 0, 0, 0, 0, 0, 0xab}), "0x0100000000000000ab");
}

}  // namespace
}  // namespace nagi::p4
