// SPDX-License-Identifier: Apache-2.0
//
// Parts of the model that go on while nothing is sent: a silence of a century takes no time.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "model/loss/loss.hpp"
#include "model/queue/dual_pi2.hpp"
#include "model/queue/pie.hpp"

namespace nagi::model {
namespace {

using namespace std::chrono_literals;

constexpr Duration century = std::chrono::hours{24 * 365 * 100};
const LossContext context{.rate = Bitrate{10'000'000},
                          .overhead = {},
                          .draws = {2008, 1, DirectionName::forward, Purpose::loss},
                          .state_draws = {2008, 1, DirectionName::forward, Purpose::loss_state}};

/// Overloads a queue for a while, empties it, and uses it once more after a century.
template <class Discipline>
void pass_over_a_silence(const Discipline& config) {
  typename Discipline::Model model(config, context.draws);
  QueueEvents events;
  Instant at{};
  for (int i = 0; i < 20'000; ++i) {
    model.enqueue({.size = {1500}}, at, Bytes{1500}, events);
    if (i % 2 == 0) model.dequeue(at, events);
    at += 500us;
  }
  EXPECT_FALSE(events.drops.empty());
  while (model.dequeue(at, events)) at += 1ms;
  at += century;
  model.enqueue({.size = {1500}}, at, Bytes{1500}, events);
  EXPECT_TRUE(model.dequeue(at + 1ms, events));
}

TEST(Silence, OfPie) { pass_over_a_silence(Pie{}); }
TEST(Silence, OfDualPi2) { pass_over_a_silence(DualPi2{}); }

// H0: after silences of 36 million changes each, the state is bad with its share of time, 1/3; two-
// sided at significance 0.001.
TEST(Silence, OfMarkovLosses) {
  const auto model = make_loss(MarkovLoss{200us, 100us, 0, 1}, context);
  constexpr int packets = 20'000;
  int lost = 0;
  Instant at{};
  for (std::uint64_t i = 0; i < packets; ++i, at += 3h) {
    lost += model->loses(i, {.packet = {100}, .start = at, .end = at + 1us}) ? 1 : 0;
  }
  const double mean = packets / 3.0;
  EXPECT_LT(std::abs(lost - mean) / std::sqrt(mean * 2 / 3), 3.29);
}

}  // namespace
}  // namespace nagi::model
