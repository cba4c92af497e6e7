// SPDX-License-Identifier: Apache-2.0
//
// Tests of the applications' arithmetic against numbers that were published or computed by hand.
// Statistical tests draw from fixed seeds. Each test states the probability that a correct
// generator exceeds the limit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "arithmetic/draws.hpp"
#include "arithmetic/playback.hpp"
#include "arithmetic/rate_search.hpp"
#include "arithmetic/reception.hpp"
#include "arithmetic/token_bucket.hpp"
#include "arithmetic/voice.hpp"
#include "io/input_error.hpp"
#include "quantity.hpp"

namespace nagi::applications {
namespace {

constexpr std::int64_t ms = 1'000'000;

/// Run a search with trains of 100 packets. `arrives` maps the sent rate to the rate that arrives.
RateSearch searched(double max_bps, const std::function<double(double)>& arrives) {
  RateSearch search(max_bps / 17, max_bps);
  while (const auto rate = search.next()) search.add_result(arrives(*rate), 100);
  EXPECT_LE(search.probes().size(), RateSearch::max_probes);
  return search;
}

TEST(RateSearch, FindsWhereAQueueBeginsToFill) {
  for (const double capacity : {1.0, 0.97, 0.8, 0.5, 0.3, 0.08, 0.02}) {
    const double best =
        searched(2e6, [&](double rate) { return std::min(rate, capacity * 2e6); }).best_bps();
    EXPECT_LE(best, capacity * 2e6 * 1.02) << capacity;
    EXPECT_GE(best, capacity * 2e6 * 0.99) << capacity;
  }
}

TEST(RateSearch, FindsThePeakWhereMoreLeavesLess) {
  for (const double peak : {0.09, 0.2, 0.45, 0.9}) {
    const auto arrives = [&](double rate) {
      return rate <= peak ? rate : std::max(0.05, peak - 2 * (rate - peak));
    };
    const double best = searched(1, arrives).best_bps();
    EXPECT_LE(best, peak * 1.03) << peak;
    EXPECT_GE(best, peak * 0.95) << peak;
  }
}

TEST(RateSearch, IsNotLedAstrayByAPlateauThatWavers) {
  // A chain of seven hops carries 353 of 2,000 kb/s. At higher rates, 270 to 300 kb/s arrive.
  std::mt19937_64 draws(1);
  std::uniform_real_distribution<double> wavers(270e3, 300e3);
  for (int i = 0; i < 100; ++i) {
    const double best =
        searched(2e6, [&](double rate) { return rate <= 353e3 ? rate : wavers(draws); }).best_bps();
    EXPECT_LE(best, 353e3 * 1.01);
    EXPECT_GE(best, 353e3 * 0.99);
  }
}

TEST(RateSearch, IsNotLedAstrayByAFewLosses) {
  // Each packet is lost with a probability of 5 %. Trains have 10 packets or more. A search makes
  // six comparisons, each with a tolerance of one standard error, and repeats a failed comparison
  // once. About 86 % of searches therefore take the largest rate. Of 200 searches, fewer than 160
  // do so with a probability of 1 %.
  std::mt19937_64 draws(1);
  int largest = 0;
  for (int i = 0; i < 200; ++i) {
    RateSearch search(1e5, 2e6);
    while (const auto rate = search.next()) {
      const double packets = std::round(*rate / 1e4);
      std::binomial_distribution<int> arrive(static_cast<int>(packets), 0.95);
      search.add_result(*rate * arrive(draws) / packets, packets);
    }
    largest += search.best_bps() > 0.9 * 2e6 ? 1 : 0;
  }
  EXPECT_GE(largest, 160);
}

TEST(RateSearch, OfALossyPathTakesTheLargestRate) {
  EXPECT_NEAR(searched(3e6, [](double rate) { return 0.9 * rate; }).best_bps(), 3e6, 1);
}

TEST(RateSearch, FindsNothingWhereNothingArrives) {
  EXPECT_EQ(searched(3e6, [](double) { return 0; }).best_bps(), 0);
}

TEST(TokenBucket, IsFullAtFirstAndFillsByTheInterval) {
  TokenBucket bucket({20, 5, 30 * ms}, 0);
  EXPECT_EQ(bucket.take(100), 20U);
  bucket.advance(30 * ms - 1);
  EXPECT_EQ(bucket.level(), 0U);
  bucket.advance(30 * ms);
  EXPECT_EQ(bucket.level(), 5U);
  bucket.advance(95 * ms);  // two more intervals
  EXPECT_EQ(bucket.level(), 15U);
  EXPECT_EQ(bucket.next_ns(), 120 * ms);
  EXPECT_EQ(bucket.lost(), 0U);
}

TEST(TokenBucket, LosesWhatDoesNotFit) {
  TokenBucket bucket({20, 20, 30 * ms}, 7);
  EXPECT_EQ(bucket.take(12), 12U);
  bucket.advance(7 + 30 * ms);  // 12 of 20 tokens fit
  EXPECT_EQ(bucket.level(), 20U);
  EXPECT_EQ(bucket.lost(), 8U);
  bucket.advance(7 + 90 * ms);
  EXPECT_EQ(bucket.lost(), 48U);
}

TEST(TokenBucket, PermitsItsRateInTheLongRun) {
  TokenBucket bucket({20, 20, 30 * ms}, 0);
  std::uint64_t taken = 0;
  for (std::int64_t now = 0; now < 3000 * ms; now += ms) {
    bucket.advance(now);
    taken += bucket.take(100);
  }
  EXPECT_EQ(taken, 20U + 99 * 20);  // 20 tokens at first, then 20 every 30 ms
}

TEST(Playback, CountsAttemptsThatFindTheirChunk) {
  Playback playback(5000);
  EXPECT_EQ(playback.attempt(5000, false), 5000U);
  EXPECT_EQ(playback.attempt(4999, false), 0U);       // the bytes remain unread
  EXPECT_EQ(playback.attempt(12'000, false), 5000U);  // a missed chunk is not made up for
  EXPECT_EQ(playback.attempts(), 3U);
  EXPECT_EQ(playback.successes(), 2U);
  EXPECT_FALSE(playback.finished());
}

TEST(Playback, EndsWithTheRestOfTheStream) {
  Playback playback(5000);
  EXPECT_EQ(playback.attempt(2880, true), 2880U);
  EXPECT_FALSE(playback.finished());
  EXPECT_EQ(playback.attempt(0, true), 0U);
  EXPECT_TRUE(playback.finished());
  EXPECT_EQ(playback.attempts(), 1U);  // the end of the stream is not an attempt
}

double mean_of(int count, const std::function<double()>& draw) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += draw();
  return sum / count;
}

constexpr int draws_count = 200'000;
// Null hypothesis: the mean is the requested one. The sample mean is approximately normal. It
// differs by more than 4 standard errors with a probability of 6e-5.
constexpr double significant = 4;

TEST(Draws, ExponentialHasItsMean) {
  Draws draws(1, "a");
  const double found = mean_of(draws_count, [&] { return draws.exponential(250); });
  EXPECT_NEAR(found, 250, significant * 250 / std::sqrt(draws_count));
}

TEST(Draws, BoundedParetoHasItsMeanAndBounds) {
  Draws draws(2, "b");
  const double low = 5e3;
  const double high = 5e6;
  const double shape = 1.2;
  const double mean = bounded_pareto_mean(low, high, shape);
  // The second moment has a closed form, like the mean.
  const double least = std::pow(low / high, shape);
  const double second = std::pow(low, shape) / (1 - least) * shape / (2 - shape) *
                        (std::pow(high, 2 - shape) - std::pow(low, 2 - shape));
  const double deviation = std::sqrt(second - mean * mean);
  double smallest = high;
  double largest = low;
  const double found = mean_of(draws_count, [&] {
    const double drawn = draws.bounded_pareto(low, high, shape);
    smallest = std::min(smallest, drawn);
    largest = std::max(largest, drawn);
    return drawn;
  });
  EXPECT_NEAR(found, mean, significant * deviation / std::sqrt(draws_count));
  EXPECT_GE(smallest, low);
  EXPECT_LE(largest, high);
  EXPECT_LT(smallest, low * 1.001);
  EXPECT_GT(largest, high / 2);  // probability: 1 - (1 - 1.3e-4)^200000 = 1 - 1e-11
}

TEST(Draws, ParetoHasItsDistribution) {
  // The mean of a Pareto distribution converges too slowly. This test checks the median, mean
  // (shape - 1) / shape 2^(1 / shape). The number of draws below the median is binomial.
  Draws draws(3, "c");
  const double median = 100 * 0.5 / 1.5 * std::pow(2, 1 / 1.5);
  int below = 0;
  for (int i = 0; i < draws_count; ++i) below += draws.pareto(100, 1.5) < median ? 1 : 0;
  EXPECT_NEAR(below, draws_count / 2, significant * std::sqrt(draws_count) / 2);
}

TEST(Draws, AreTheSameForTheSameSeedAndStream) {
  const auto first = [](std::uint64_t seed, const char* stream) {
    return Draws(seed, stream).uniform();
  };
  EXPECT_EQ(first(7, "web/sizes"), first(7, "web/sizes"));
  EXPECT_NE(first(7, "web/sizes"), first(7, "web/pauses"));
  EXPECT_NE(first(7, "web/sizes"), first(8, "web/sizes"));
  EXPECT_NE(first(7, "web/sizes"), first(7 + (1ULL << 32), "web/sizes"));
}

// ITU-T G.107, annex B, table B.1: R and the MOS that corresponds to it.
TEST(Voice, OpinionScoresAreThoseOfG107) {
  EXPECT_NEAR(opinion_score(90), 4.34, 0.005);
  EXPECT_NEAR(opinion_score(80), 4.03, 0.007);  // the formula gives 4.024
  EXPECT_NEAR(opinion_score(70), 3.60, 0.005);
  EXPECT_NEAR(opinion_score(60), 3.10, 0.005);
  EXPECT_NEAR(opinion_score(50), 2.58, 0.006);
  EXPECT_EQ(opinion_score(-5), 1);
  EXPECT_EQ(opinion_score(120), 4.5);
  EXPECT_NEAR(opinion_score(93.2), 4.41, 0.005);  // all parameters at their defaults
}

TEST(Voice, DelayCountsFromATenthOfASecondOn) {
  EXPECT_EQ(delay_impairment(0), 0);
  EXPECT_EQ(delay_impairment(100), 0);
  // X = 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2).
  EXPECT_NEAR(delay_impairment(200),
              25 * (std::pow(2, 1.0 / 6) - 3 * std::pow(730.0 / 729, 1.0 / 6) + 2), 1e-9);
  // G.114, figure 1: R is about 70 at 400 ms, and above 80 at 250 ms.
  EXPECT_NEAR(rating(g711, 400, 0), 69, 1);
  EXPECT_GT(rating(g711, 250, 0), 80);
}

TEST(Voice, LossCountsByTheCodecsRobustness) {
  EXPECT_EQ(loss_impairment(g711, 0), 0);
  // G.113 gives Ie 0 and Bpl 25.1. The impairment is 95 x 1 / (1 + 25.1), and 95 / (0.5 + 25.1) if
  // bursts are twice as long.
  EXPECT_NEAR(loss_impairment(g711, 0.01), 95 / 26.1, 1e-9);
  EXPECT_NEAR(loss_impairment(g711, 0.01, 2), 95 / 25.6, 1e-9);
  EXPECT_NEAR(loss_impairment(g711, 0.05), 475 / 30.1, 1e-9);
}

TEST(Reception, CountsLostAndReorderedPackets) {
  Reception reception;
  for (const std::uint64_t number : {0, 1, 4, 3, 3, 6}) {
    reception.receive(number, 0, static_cast<std::int64_t>(number) * ms);
  }
  EXPECT_EQ(reception.expected(), 7U);
  EXPECT_EQ(reception.received(), 5U);
  EXPECT_EQ(reception.lost(), 2U);
  EXPECT_EQ(reception.reordered(), 1U);
  EXPECT_EQ(reception.duplicates(), 1U);
  EXPECT_THAT(reception.delays(), testing::ElementsAre(0, 1 * ms, 3 * ms, 4 * ms, 6 * ms));
}

TEST(Reception, HasTheJitterOfRfc3550) {
  Reception reception;
  reception.receive(0, 0, 10 * ms);
  reception.receive(1, 20 * ms, 46 * ms);  // 16 ms later than the first: J = 16 / 16
  EXPECT_DOUBLE_EQ(reception.jitter_ns(), 1.0 * ms);
  reception.receive(2, 40 * ms, 66 * ms);  // as late as the second: J = 1 - 1 / 16
  EXPECT_DOUBLE_EQ(reception.jitter_ns(), 15.0 / 16 * ms);
  EXPECT_DOUBLE_EQ(reception.max_jitter_ns(), 1.0 * ms);
}

TEST(Reception, TakesNoMemoryForNumbersThatDoNotCome) {
  // A stranger's datagram: with 8 bytes per number up to the highest, memory would be 2 GB.
  Reception reception;
  constexpr std::uint64_t highest = (1ULL << 28) - 1;
  reception.receive(highest, 0, 10 * ms);
  reception.receive(0, 0, 20 * ms);
  reception.receive(highest + 1, 0, 20 * ms);  // not a datagram of the application
  EXPECT_EQ(reception.expected(), highest + 1);
  EXPECT_EQ(reception.lost(), highest - 1);
  EXPECT_THAT(reception.delays(), testing::ElementsAre(10 * ms, 20 * ms));
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  EXPECT_LT(used.ru_maxrss, 1'000'000);  // kB
  const Reception::Call call = reception.call(g711, 20, 60);
  EXPECT_DOUBLE_EQ(call.unplayed,
                   static_cast<double>(highest - 1) / static_cast<double>(highest + 1));
}

TEST(Reception, PassesOverWhatWasSentAtNoTime) {
  Reception reception;
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  reception.receive(0, -1, 5 * ms);
  reception.receive(1, std::numeric_limits<std::int64_t>::min(), 5 * ms);
  EXPECT_EQ(reception.received(), 0U);
  reception.receive(2, end, 0);  // clocks may differ by this
  reception.receive(3, 0, end);
  EXPECT_THAT(reception.delays(), testing::ElementsAre(-end, end));
  EXPECT_DOUBLE_EQ(reception.jitter_ns(), 2 * static_cast<double>(end) / 16);
  EXPECT_GT(reception.call(g711, 20, 60).unplayed, 0.5);
}

TEST(Reception, ACallMissesWhatIsLostOrTooLate) {
  Reception reception;
  for (std::uint64_t number = 0; number < 100; ++number) {
    if (number == 10 || number == 11) continue;  // a burst of two
    const std::int64_t delay = number == 50 ? 90 : number == 51 ? 79 : 20;
    reception.receive(number, 0, delay * ms);
  }
  const Reception::Call call = reception.call(g711, 20, 60);
  EXPECT_DOUBLE_EQ(call.delay_ms, 100);  // ms: 20 of the path, 60 of the buffer, 20 of the packet
  EXPECT_DOUBLE_EQ(call.unplayed, 0.03);
  EXPECT_DOUBLE_EQ(call.burst_ratio, 1.5 * 0.97);
  EXPECT_NEAR(call.rating, 93.2 - 95 * 3 / (3 / (1.5 * 0.97) + 25.1), 1e-9);
}

TEST(Quantity, ReadsUnits) {
  EXPECT_EQ(parse_bytes("5 MB"), 5'000'000U);
  EXPECT_EQ(parse_bytes("5MiB"), 5'242'880U);
  EXPECT_EQ(parse_bytes("1000"), 1000U);
  EXPECT_EQ(parse_duration("40ms"), 40'000'000U);
  EXPECT_EQ(parse_duration("1.5 s"), 1'500'000'000U);
  EXPECT_EQ(parse_rate("0.1 Mb/s"), 100'000U);
}

TEST(Quantity, RefusesWhatIsNone) {
  for (const char* text : {"", "fast", "-1 s", "1 furlong", "1e30 s", "nan", "inf", "0.3 ns"}) {
    EXPECT_THROW(parse_duration(text), InputError) << text;
  }
}

}  // namespace
}  // namespace nagi::applications
