// SPDX-License-Identifier: Apache-2.0
//
// The saturation throughput of n stations that all hear each other, beside G. Bianchi,
// "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3),
// 2000: equations 7, 9 and 13. After a collision bystanders wait for EIFS, which the formula leaves
// open; packets are never given up there.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/medium/medium.hpp"

namespace nagi::model {
namespace {

constexpr Bytes ip_packet{1500};

MediumConfig config_of(std::size_t stations, bool rts) {
  MediumConfig config;
  config.phy.data_rate = {1'000'000};
  config.phy.basic_rate = {1'000'000};
  config.short_retry_limit = config.long_retry_limit = 1'000'000;
  config.queue = DropTail{Unlimited{}};
  if (rts) config.rts_threshold = Bytes{0};
  config.stations.resize(stations + 1);
  config.reach = RangesReach{};
  return config;
}

/// IP bits a second.
double formula(const MediumConfig& config, double n, bool rts) {
  const double window = config.cw_min + 1;
  const double stages = std::log2((config.cw_max + 1) / window);
  double low = 0;
  double high = 1;
  // The probability p that a transmission collides, by bisection: p - (1 - (1 - tau(p))^(n-1))
  // grows with p.
  double tau = 0;
  for (int step = 0; step < 100; ++step) {
    const double p = (low + high) / 2;
    // Equation 7 without its singularity at p = 1/2.
    double sum = 0;
    for (int i = 0; i < static_cast<int>(stages); ++i) sum += std::pow(2 * p, i);
    tau = 2 / (1 + window + p * window * sum);
    (p < 1 - std::pow(1 - tau, n - 1) ? low : high) = p;
  }
  const Phy phy(config.phy);
  const auto us = [](Duration duration) { return static_cast<double>(duration.count()) / 1e3; };
  const double data = us(phy.data(ip_packet));
  const double before = rts ? us(phy.rts() + phy.cts() + 2 * phy.sifs()) : 0;
  const double success = before + data + us(phy.sifs() + phy.ack() + phy.difs());
  const double collision = (rts ? us(phy.rts()) : data) + us(phy.eifs());
  const double some = 1 - std::pow(1 - tau, n);
  const double one = n * tau * std::pow(1 - tau, n - 1);
  return one * static_cast<double>(ip_packet.count) * 8e6 /
         ((1 - some) * us(phy.slot()) + one * success + (some - one) * collision);
}

double simulated(const MediumConfig& config, std::size_t stations, Duration length) {
  Medium medium(config, 11, 0);
  MediumEvents events;
  Packet packet;
  packet.size = ip_packet;
  packet.next_hop = static_cast<StationIndex>(stations);
  for (Instant at{}; at < Instant{length}; at += std::chrono::seconds{1}) {
    for (StationIndex station = 0; station < stations; ++station) {
      while (medium.held(station) < 150) medium.offer(station, packet, at, events);
    }
    medium.advance(at + std::chrono::seconds{1}, events);
  }
  const double seconds = std::chrono::duration<double>(length).count();
  return static_cast<double>(events.deliveries.size() * ip_packet.count) * 8 / seconds;
}

class Saturation : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(Saturation, IsBianchis) {
  const auto [stations, rts] = GetParam();
  const MediumConfig config = config_of(stations, rts);
  const double expected = formula(config, static_cast<double>(stations), rts);
  const double measured = simulated(config, stations, std::chrono::seconds{1000});
  EXPECT_NEAR(measured / expected, 1, 0.02)
      << measured / 1e3 << " kb/s, formula " << expected / 1e3;
  RecordProperty("ratio", std::to_string(measured / expected));
}

INSTANTIATE_TEST_SUITE_P(Stations, Saturation,
                         testing::Combine(testing::Values(1, 2, 3, 5, 10, 15, 20),
                                          testing::Bool()));

}  // namespace
}  // namespace nagi::model
