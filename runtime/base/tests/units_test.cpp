// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <gtest/gtest.h>

namespace nagi {
namespace {

using namespace std::chrono_literals;

TEST(BandwidthDelayProduct, IsRoundedUpToWholePackets) {
  // 100 Mb/s x 100 ms = 1,250,000 bytes = 1188.2 packets of 1,052 bytes.
  EXPECT_EQ(bandwidth_delay_product(1'000'000, {100'000'000}, 100ms, {1052}).count, 1189u);
}

TEST(BandwidthDelayProduct, IsNotRoundedUpWhenItIsWhole) {
  EXPECT_EQ(bandwidth_delay_product(1'000'000, {100'000'000}, 100ms, {1000}).count, 1250u);
  EXPECT_EQ(bandwidth_delay_product(500'000, {100'000'000}, 100ms, {1000}).count, 625u);
}

TEST(BandwidthDelayProduct, DoesNotOverflow) {
  // 1,000 x 1 Tb/s x 1 h = 4.5e17 bytes.
  EXPECT_EQ(bandwidth_delay_product(1'000'000'000, {1'000'000'000'000}, 1h, {1500}).count,
            300'000'000'000'000u);
}

TEST(BandwidthDelayProduct, DoesNotWrap) {
  constexpr std::uint64_t maximum = ~std::uint64_t{0};
  // 10^6 x 1 Tb/s x 1 h = 4.5 x 10^20 packets of a byte.
  EXPECT_EQ(bandwidth_delay_product(1'000'000'000'000, {1'000'000'000'000}, 1h, {1}).count,
            maximum);
  EXPECT_EQ(bandwidth_delay_product(maximum, {maximum}, Duration::max(), {1}).count, maximum);
}

TEST(Saturated, KeepsWhatFits) {
  constexpr std::uint64_t maximum = ~std::uint64_t{0};
  EXPECT_EQ(saturated(maximum), maximum);
  EXPECT_EQ(saturated(static_cast<unsigned __int128>(maximum) + 1), maximum);
  EXPECT_EQ(saturated(7), 7u);
}

}  // namespace
}  // namespace nagi
