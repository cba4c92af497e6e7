// SPDX-License-Identifier: Apache-2.0
//
// The log of drops distinguishes all causes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frames.hpp"
#include "program/tests/small_program.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {
namespace {

using test::assign;
using test::hex;
using test::named;
using test::primitive;
using test::SmallProgram;
using testing::ElementsAre;

const nlohmann::json egress_spec = test::field("standard_metadata", "egress_spec");
const nlohmann::json drop = primitive("mark_to_drop", {named("header", "standard_metadata")});

/// Return the logged causes for frames that arrive at port 1, each with side and port.
class Dropping {
 public:
  explicit Dropping(Program program)
      : switch_(two_ports(), std::move(program), pool_, [this](const Drop& one) {
          const std::string side = one.side == Drop::Side::in ? ".in: " : ".out: ";
          told_.push_back(std::to_string(one.port + 1) + side + std::string(one.cause));
        }) {}
  explicit Dropping(const SmallProgram& program) : Dropping(program.load()) {}

  std::vector<std::string> causes(const std::vector<std::uint8_t>& bytes) {
    const io::Frame frame{pool_.take(), 0, static_cast<std::uint32_t>(bytes.size())};
    std::memcpy(pool_.data(frame.slot), bytes.data(), bytes.size());
    switch_.arrive(0, frame, switch_.now());
    EXPECT_TRUE(switch_.departures().empty());
    EXPECT_EQ(counters().received + counters().copies, counters().ended());
    return std::exchange(told_, {});
  }
  Control& control() { return switch_.machine().control(); }
  void perform(const nlohmann::json& request) {
    Controller(switch_, {[] {}, [](std::size_t) {}, {}, {}}).answer(request);
  }

 private:
  const Counters& counters() { return switch_.machine().counters(); }

  io::FramePool pool_{2048};
  std::vector<std::string> told_;
  Switch switch_;
};

const std::vector<std::uint8_t> eight(8);

TEST(Drop, ByTheProgramSaysWhere) {
  SmallProgram program;
  program.forward(511);
  Dropping in_ingress(program);
  EXPECT_THAT(in_ingress.causes(eight), ElementsAre("1.in: ingress"));
  EXPECT_THAT(in_ingress.causes({1, 2, 3}), ElementsAre("1.in: ingress, after a parser error"));
  program = SmallProgram();
  program.forward(2);
  program.egress({drop});
  EXPECT_THAT(Dropping(program).causes(eight), ElementsAre("2.out: egress"));
  program = SmallProgram();
  program.forward(9);
  program.egress({drop});
  EXPECT_THAT(Dropping(program).causes(eight), ElementsAre("1.in: egress"));
}

TEST(Drop, OfAWrongChecksumSaysSo) {
  Dropping edge(load_program_file(edge_program));
  auto bytes = ipv4_frame(2, 100);
  EXPECT_THAT(edge.causes(bytes), ElementsAre("1.in: ingress"));  // no route
  bytes[24] ^= 1;
  EXPECT_THAT(edge.causes(bytes), ElementsAre("1.in: ingress, after a wrong checksum"));
}

TEST(Drop, OfASampleIsNoneOfAPacket) {
  Dropping edge(load_program_file(edge_program));
  edge.control().mirror_add(1, {Port{500}, {}});
  edge.perform(route(2));
  edge.perform({{"op", "table_add"},
                {"table", "egress.ports"},
                {"match", {2}},
                {"action", "egress.impose"},  // every packet is a sample, and lost
                {"data", {1, 0, 0, 0, 0, 0, std::uint64_t{1} << 32, 0}}});
  EXPECT_THAT(edge.causes(ipv4_frame(2, 100)),
              ElementsAre("2.out: egress", "1.in: ingress, recirculated"));
}

TEST(Drop, OfWhatHasNowhereToGo) {
  SmallProgram program;
  program.forward(9);
  EXPECT_THAT(Dropping(program).causes(eight), ElementsAre("1.in: no such port"));
  program = SmallProgram();
  program.ingress({assign(test::field("standard_metadata", "mcast_grp"), hex(7))});
  Dropping group(program);
  EXPECT_THAT(group.causes(eight), ElementsAre("1.in: no such multicast group"));
  group.control().multicast_create(7, {});
  EXPECT_THAT(group.causes(eight), ElementsAre("1.in: no such multicast group"));
  program = SmallProgram();
  program.forward(2);
  program.ingress({assign(test::field("standard_metadata", "priority"), hex(3))});
  EXPECT_THAT(Dropping(program).causes(eight), ElementsAre("2.out: no such priority"));
}

TEST(Drop, OfWhatGoesWrong) {
  SmallProgram program;
  program.ingress({primitive("resubmit", {hex(1)})});
  EXPECT_THAT(Dropping(program).causes(eight),
              ElementsAre("1.in: resubmitted or recirculated too often"));
  program = SmallProgram();
  program.header("more", "h_t", false);
  program.root["deparsers"][0]["order"] = nlohmann::json::array({"more", "h"});
  program.forward(2);
  program.ingress({primitive("add_header", {named("header", "more")})});
  EXPECT_THAT(Dropping(program).causes(std::vector<std::uint8_t>(2048)),
              ElementsAre("2.out: too long"));
  program = SmallProgram();
  program.ingress({primitive("assert", {test::wrapped(test::operation("==", hex(0), hex(1)))})});
  EXPECT_THAT(Dropping(program).causes(eight), ElementsAre("1.in: failed assertion"));
  program = SmallProgram();
  program.forward(9);
  program.egress({primitive("clone_egress_pkt_to_egress", {hex(1), hex(0)}), drop});
  Dropping endless(program);
  endless.control().mirror_add(1, {Port{9}, {}});
  const auto told = endless.causes(eight);
  EXPECT_EQ(told.back(), "1.in: copies without end");
  EXPECT_EQ(told.front(), "1.in: egress");
}

}  // namespace
}  // namespace nagi::p4
