// SPDX-License-Identifier: Apache-2.0
#include "switch/daemon/switch.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "frames.hpp"
#include "io/input_error.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/port_account.hpp"

namespace nagi::p4 {
namespace {

using nlohmann::json;

Instant at(std::int64_t ns) { return Instant{Duration{ns}}; }

/// A switch with edge.p4, a route to port 2, and a route to a port that does not exist.
class SwitchTest : public testing::Test {
 protected:
  struct Told {
    std::size_t port;
    Drop::Side side;
    std::int64_t at;
    std::string cause;
    std::vector<std::uint8_t> headers;
  };

  void start(const QueueConfig& queue) {
    SwitchConfig config = two_ports();
    config.ports[1].queue = queue;
    switch_.emplace(config, load_program_file(edge_program), pool_, [this](const Drop& drop) {
      const auto kept = std::min<std::size_t>(drop.headers.length, drop.headers.bytes.size());
      told_.push_back({drop.port,
                       drop.side,
                       drop.at.time_since_epoch().count(),
                       std::string(drop.cause),
                       {drop.headers.bytes.begin(),
                        drop.headers.bytes.begin() + static_cast<std::ptrdiff_t>(kept)}});
    });
    Controller controller(*switch_, {[] {}, [](std::size_t) {}, {}, {}});
    for (const int net : {2, 9}) controller.answer(route(net));
  }

  void arrive(int net, std::size_t ip_bytes, std::int64_t ns, std::size_t port = 0) {
    const auto bytes = ipv4_frame(static_cast<std::uint8_t>(net), ip_bytes);
    const io::Frame frame{pool_.take(), 256, static_cast<std::uint32_t>(bytes.size())};
    std::memcpy(pool_.data(frame.slot) + frame.offset, bytes.data(), bytes.size());
    switch_->arrive(port, frame, at(ns));
  }
  std::vector<std::int64_t> left() {
    std::vector<std::int64_t> instants;
    for (const Departure& departure : switch_->departures()) {
      instants.push_back(departure.at.time_since_epoch().count());
      pool_.give_back(departure.frame.slot);
    }
    switch_->departures().clear();
    return instants;
  }

  io::FramePool pool_{4096};
  std::optional<Switch> switch_;
  std::vector<Told> told_;
};

TEST_F(SwitchTest, ForwardsAtOnceWithoutARate) {
  start({});
  arrive(2, 500, 7);
  ASSERT_EQ(switch_->departures().size(), 1U);
  const Departure& departure = switch_->departures()[0];
  EXPECT_EQ(departure.port, 1U);
  EXPECT_EQ(departure.at, at(7));
  EXPECT_EQ(departure.frame.length, 514U);
  const std::uint8_t* data = pool_.data(departure.frame.slot) + departure.frame.offset;
  EXPECT_EQ(data[14 + 8], 63);  // TTL
  left();
  EXPECT_FALSE(switch_->next_departure());
}

TEST_F(SwitchTest, KeepsRateAndDepth) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{8'000'000};  // 1 us a byte of IP
  queue.depth_packets = 2;
  start(queue);
  for (int i = 0; i < 5; ++i) arrive(2, 1000, i);
  EXPECT_TRUE(left().empty());
  EXPECT_EQ(switch_->next_departure(), at(1'000'000));
  switch_->advance(at(10'000'000));
  EXPECT_EQ(left(), (std::vector<std::int64_t>{1'000'000, 2'000'000, 3'000'000}));
  EXPECT_EQ(switch_->output(1).queue_full, 2U);
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_EQ(told_[0].cause, "queue overflow");
  EXPECT_EQ(told_[0].port, 1U);
  EXPECT_EQ(told_[0].side, Drop::Side::out);
  EXPECT_EQ(told_[1].at, 4);
  // The frame is as it arrived: its TTL has not changed.
  const auto came = ipv4_frame(2, 1000);
  EXPECT_EQ(told_[0].headers, std::vector(came.begin(), came.begin() + 128));
  EXPECT_EQ(switch_->machine().counters().discarded, 2U);
}

TEST_F(SwitchTest, CountsWhatGoesToNoPort) {
  start({});
  arrive(9, 100, 0);
  EXPECT_TRUE(left().empty());
  EXPECT_EQ(switch_->input(0).no_such_port, 1U);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].cause, "no such port");
}

TEST_F(SwitchTest, CountsWhatTheProgramDrops) {
  start({});
  arrive(77, 100, 0);  // no route
  EXPECT_EQ(switch_->input(0).dropped_by_program, 1U);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0].cause, "ingress");
  EXPECT_EQ(told_[0].side, Drop::Side::in);
}

TEST_F(SwitchTest, AChangedRateHoldsForWhatIsBeingSent) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{8'000'000};
  start(queue);
  for (int i = 0; i < 3; ++i) arrive(2, 1000, 0);
  switch_->advance(at(500'000));
  queue.rates.bits = Bitrate{80'000'000};
  switch_->change(1, queue);
  EXPECT_EQ(switch_->next_departure(), at(550'000));
  queue.rates.bits.reset();
  switch_->advance(at(520'000));
  switch_->change(1, queue);
  EXPECT_EQ(left(), (std::vector<std::int64_t>(3, 520'000)));
}

TEST_F(SwitchTest, SamplesQueuesAtTheirInstants) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{8'000'000};
  start(queue);
  std::vector<std::pair<std::int64_t, std::uint64_t>> seen;
  switch_->sample_every(Duration{1'000'000}, [&](Instant when) {
    seen.emplace_back(when.time_since_epoch().count(), switch_->depth(1).now().packets);
  });
  for (int i = 0; i < 4; ++i) arrive(2, 900, 0);
  switch_->advance(at(3'100'000));
  EXPECT_EQ(seen, (std::vector<std::pair<std::int64_t, std::uint64_t>>{
                      {1'000'000, 2}, {2'000'000, 1}, {3'000'000, 0}}));
  left();
}

TEST_F(SwitchTest, KeepsItsBooks) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{8'000'000};
  queue.depth_packets = 3;
  start(queue);
  for (int i = 0; i < 50; ++i) arrive(i % 5 == 0 ? 77 : i % 7 == 0 ? 9 : 2, 500, i * 100'000);
  std::size_t sent = left().size();
  const Counters& count = switch_->machine().counters();
  const std::uint64_t ends = count.ended() + switch_->depth(1).now().packets;
  EXPECT_EQ(count.received + count.copies, ends);
  switch_->advance(at(1'000'000'000));
  sent += left().size();
  EXPECT_EQ(50U, sent + switch_->input(0).dropped_by_program + switch_->input(0).no_such_port +
                     switch_->output(1).queue_full);
}

TEST_F(SwitchTest, AnotherProgramTakesOverWhilePacketsWait) {
  QueueConfig queue;
  queue.rates.bits = Bitrate{8'000'000};
  start(queue);
  for (int i = 0; i < 3; ++i) arrive(2, 1000, i);
  switch_->replace(load_program_file(edge_program));  // without a route
  arrive(2, 1000, 10);
  EXPECT_EQ(switch_->input(0).dropped_by_program, 1U);
  Controller controller(*switch_, {[] {}, [](std::size_t) {}, {}, {}});
  controller.answer(route(2));
  arrive(2, 1000, 20);
  switch_->advance(at(10'000'000));
  EXPECT_EQ(left(), (std::vector<std::int64_t>{1'000'000, 2'000'000, 3'000'000, 4'000'000}));
  const Counters all = switch_->counters();
  EXPECT_EQ(all.received, 5U);
  EXPECT_EQ(all.received + all.copies, all.ended());
  EXPECT_EQ(switch_->machine().counters().received, 2U);
  EXPECT_EQ(switch_->replaced(), 1U);
}

TEST_F(SwitchTest, TheControllerHasAPort) {
  SwitchConfig config = two_ports();
  config.cpu_port = 9;
  switch_.emplace(config, load_program_file(edge_program), pool_,
                  std::function<void(const Drop&)>());
  Controller controller(*switch_, {[] {}, [](std::size_t) {}, {}, {}});
  for (const int net : {2, 9}) controller.answer(route(net));
  arrive(9, 100, 5'000);
  EXPECT_TRUE(left().empty());
  const auto told = switch_->take_packets_in();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].bytes.size(), 114U);
  EXPECT_EQ(told[0].at, at(5'000));
  EXPECT_TRUE(switch_->take_packets_in().empty());
  switch_->arrive_from_controller(ipv4_frame(2, 200));
  ASSERT_EQ(switch_->departures().size(), 1U);
  EXPECT_EQ(switch_->departures()[0].port, 1U);
  left();
  EXPECT_THROW(switch_->arrive_from_controller({}), InputError);
  EXPECT_THROW(switch_->arrive_from_controller(std::vector<std::uint8_t>(5000)), InputError);
  EXPECT_EQ(switch_->input(2).received, 1U);
  EXPECT_EQ(switch_->output(2).sent, 1U);
  EXPECT_EQ(switch_->ports(), 2U);
}

TEST(AchievedRate, IsOfLongBackloggedIntervalsOnly) {
  AchievedRate rate;
  const auto send = [&](std::int64_t ms, bool follows) {
    rate.add({0, {}, at(ms * 1'000'000), {1000}, follows}, at(ms * 1'000'000));
  };
  send(0, false);
  send(50, true);  // too short
  send(1000, false);
  for (int i = 1; i <= 20; ++i) send(1000 + 10 * i, true);
  EXPECT_EQ(rate.sum().intervals, 1U);
  EXPECT_EQ(rate.sum().packets, 20U);
  EXPECT_EQ(rate.sum().bytes.count, 20'000U);
  EXPECT_EQ(rate.sum().length, Duration{200'000'000});
  send(2000, false);
  EXPECT_EQ(rate.sum().intervals, 1U);
}

}  // namespace
}  // namespace nagi::p4
