/* SPDX-License-Identifier: Apache-2.0 */
#include "usrp_channel.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>

#include "io/clock.hpp"
#include "pdu.h"

namespace gr::nagi {

namespace {

constexpr const char* me = "usrp_channel";
constexpr std::int64_t probe_gap_ns = 20'000'000;
/// Time to wait for the device's report on a burst, which may come after the samples of the burst.
constexpr std::chrono::milliseconds report_timeout(20);
/// Return the mean power of `samples`, or 0 if there are none.
double mean_power(std::span<const gr_complex> samples) {
  double sum = 0;
  for (const gr_complex& sample : samples) sum += static_cast<double>(std::norm(sample));
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

// The number of positions that a receiver with its own clock may search.
constexpr std::size_t max_positions = 8192;

}  // namespace

UsrpChannel::UsrpChannel(std::shared_ptr<BurstSender> sender, std::shared_ptr<SampleStream> stream,
                         std::shared_ptr<HalfDuplex> half_duplex, const PreambleShape& preamble,
                         const UsrpChannelSettings& settings)
    : gr::block(me, gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      sender_(std::move(sender)),
      stream_(std::move(stream)),
      half_duplex_(std::move(half_duplex)),
      preamble_(preamble),
      settings_(settings),
      shared_(std::make_shared<Shared>(settings.common_clock)) {
  const std::size_t positions =
      settings.common_clock ? common_clock_positions(preamble) : max_positions;
  search_ = std::make_unique<BurstSearch>(preamble_, positions, settings.max_false_alarms);
  message_port_register_out(pmt::mp("bursts"));
  message_port_register_in(pmt::mp("bursts"));
  set_msg_handler(pmt::mp("bursts"), [this](const pmt::pmt_t& message) { transmit(message); });
}

std::size_t UsrpChannel::common_clock_positions(const PreambleShape& preamble) {
  // The detector's fine search extends by half of repeat_length to either side of its first
  // estimate.
  return 2 * DelayTracking(true).margin(0) + preamble.repeat_length + 1;
}

bool UsrpChannel::stop() {
  {
    const std::lock_guard lock(shared_->taking);
    shared_->closed = true;  // windows that arrive later are discarded
  }
  return gr::block::stop();
}

void UsrpChannel::close() {
  stop();
  stream_.reset();
  sender_.reset();
}

std::int64_t UsrpChannel::begin_of_burst(std::int64_t begin_ns) {
  const std::int64_t at_ns = settings_.epoch_monotonic_ns + begin_ns + settings_.lead_ns;
  const auto wanted = static_cast<std::int64_t>(std::llround(sender_->sample_at(at_ns)));
  return std::max(wanted, earliest_);
}

void UsrpChannel::transmit(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, me);
  const auto samples = samples_of(pdu, me);
  const std::int64_t begin_ns = begin_of(pdu, me);
  // Both directions may share an output, so the identifier includes the direction.
  const std::uint64_t id = 2 * number_of(pdu, me) + settings_.direction;
  Burst burst{id, pdu.meta, begin_of_burst(begin_ns), samples.size(), 0, 0};
  earliest_ = burst.begin + std::ssize(samples);
  if (half_duplex_) {
    const auto duration_ns =
        static_cast<std::int64_t>(static_cast<double>(samples.size()) / stream_->rate_hz() * 1e9);
    half_duplex_->transmit(settings_.direction, begin_ns, begin_ns + duration_ns);
  }
  {
    const std::lock_guard lock(shared_->mutex);
    burst.margin = shared_->tracking.margin(burst.begin);
    burst.expected = burst.begin +
                     static_cast<std::int64_t>(std::llround(shared_->tracking.delay(burst.begin))) -
                     static_cast<std::int64_t>(burst.margin);
  }
  sender_->send(burst.id, burst.begin, samples);
  // Windows end in the order of their bursts, so that bursts are published in order.
  latest_ = std::max(
      latest_, burst.expected + std::ssize(samples) + 2 * static_cast<std::int64_t>(burst.margin));
  const auto length = static_cast<std::size_t>(latest_ - burst.expected);
  stream_->cut(burst.expected, length,
               [this, burst, shared = shared_](std::optional<std::span<const gr_complex>> cut) {
                 const std::lock_guard lock(shared->taking);
                 if (shared->closed) return;
                 process_window(burst, cut);
               });
}

/// Check the window of a burst and publish the burst, in the stream's thread. `samples` is nullopt
/// if samples of the window are missing.
void UsrpChannel::process_window(const Burst& burst,
                                 std::optional<std::span<const gr_complex>> samples) {
  const bool has_failed = sender_->take_failure(burst.id, report_timeout);
  if (half_duplex_) {
    const Pdu pdu{burst.meta, pmt::PMT_NIL};
    const std::int64_t begin_ns = begin_of(pdu, me);
    const auto duration_ns =
        static_cast<std::int64_t>(static_cast<double>(burst.length) / stream_->rate_hz() * 1e9);
    if (half_duplex_->overlaps(settings_.direction, begin_ns, begin_ns + duration_ns)) {
      publish_lost(burst, Outcome::receiver_busy);
      return;
    }
  }
  if (has_failed) {
    publish_lost(burst, Outcome::not_sent);
    return;
  }
  if (!samples) {
    publish_lost(burst, Outcome::not_received);
    return;
  }
  const std::size_t searched = settings_.guard + search_->length() + 2 * burst.margin;
  const auto found = search_->find(samples->first(std::min(searched, samples->size())));
  {
    const std::lock_guard lock(shared_->mutex);
    if (found) {
      const double at =
          static_cast<double>(burst.expected) + found->begin - static_cast<double>(settings_.guard);
      shared_->tracking.found(burst.begin, at - static_cast<double>(burst.begin));
    } else {
      shared_->tracking.missed();
    }
  }
  if (!found) {  // the receiver detects nothing in an empty burst
    message_port_pub(pmt::mp("bursts"), make_burst(burst.meta, std::span<const gr_complex>()));
    return;
  }
  // The burst is scaled to the amplitude with which it was sent.
  std::vector<gr_complex> received(samples->begin(), samples->end());
  const auto gain = static_cast<float>(1 / found->amplitude);
  for (gr_complex& sample : received) sample *= gain;
  message_port_pub(pmt::mp("bursts"), make_burst(burst.meta, received));
}

void UsrpChannel::publish_lost(const Burst& burst, Outcome why) {
  {
    const std::lock_guard lock(shared_->mutex);
    ++shared_->lost[why];
  }
  const pmt::pmt_t meta =
      pmt::dict_add(burst.meta, key::fate(), pmt::from_long(static_cast<long>(why)));
  message_port_pub(pmt::mp("bursts"), make_burst(meta, std::span<const gr_complex>()));
}

ChannelCounts UsrpChannel::counts() const {
  ChannelCounts counts{sender_->counts(), stream_->counts()};
  const std::lock_guard lock(shared_->mutex);
  const auto count = [this](Outcome why) {
    const auto found = shared_->lost.find(why);
    return found == shared_->lost.end() ? 0 : found->second;
  };
  counts.not_sent = count(Outcome::not_sent);
  counts.not_received = count(Outcome::not_received);
  counts.receiver_busy = count(Outcome::receiver_busy);
  return counts;
}

Synchronisation UsrpChannel::synchronise(std::size_t probes, double within_s) {
  const double rate_hz = stream_->rate_hz();
  const auto reach = static_cast<std::size_t>(within_s * rate_hz) + 1;
  const auto search =
      std::make_shared<BurstSearch>(preamble_, 2 * reach + 1, settings_.max_false_alarms);
  std::vector<gr_complex> probe(settings_.guard);
  probe.insert(probe.end(), preamble_.samples.begin(), preamble_.samples.end());
  probe.resize(probe.size() + settings_.guard);

  struct Results {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t awaited = 0;
    std::vector<std::pair<std::int64_t, double>> delays;
    double signal = 0;  // sum of the mean powers of preambles; `noise`: of the samples before them
    double noise = 0;
  };
  const auto results = std::make_shared<Results>();
  results->awaited = probes;
  const std::int64_t start_ns = ::nagi::io::read_clock(CLOCK_MONOTONIC) + settings_.lead_ns +
                                static_cast<std::int64_t>(within_s * 1e9) + 60'000'000;
  const auto spacing_ns =
      probe_gap_ns + static_cast<std::int64_t>(static_cast<double>(probe.size()) / rate_hz * 1e9);
  for (std::size_t i = 0; i < probes; ++i) {
    const std::int64_t at_ns = start_ns + static_cast<std::int64_t>(i) * spacing_ns;
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point{std::chrono::nanoseconds{at_ns - settings_.lead_ns}});
    const auto begin = static_cast<std::int64_t>(std::llround(sender_->sample_at(at_ns)));
    // The expected position follows from the common clock, or else from this machine's clock.
    const std::int64_t expected =
        settings_.common_clock ? begin
                               : static_cast<std::int64_t>(std::llround(stream_->sample_at(at_ns)));
    const std::int64_t from = expected - static_cast<std::int64_t>(reach);
    sender_->send(i, begin, probe);
    stream_->cut(from, probe.size() + 2 * reach,
                 [results, search, begin, from, guard = settings_.guard,
                  length = preamble_.samples.size()](auto samples) {
                   const std::lock_guard lock(results->mutex);
                   const auto found = samples ? search->find(*samples) : std::nullopt;
                   if (found) {
                     const double at =
                         static_cast<double>(from) + found->begin - static_cast<double>(guard);
                     results->delays.emplace_back(begin, at - static_cast<double>(begin));
                     const auto preamble = static_cast<std::size_t>(std::max(0.0, found->begin));
                     const std::size_t before = preamble - std::min(preamble, 2 * guard);
                     results->signal += mean_power(samples->subspan(preamble, length));
                     results->noise += mean_power(samples->first(before));
                   }
                   --results->awaited;
                   results->changed.notify_one();
                 });
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::unique_lock lock(results->mutex);
  results->changed.wait_until(lock, give_up, [&results] { return results->awaited == 0; });
  Synchronisation result{probes, results->delays.size(), 0, 0, 0};
  for (std::size_t i = 0; i < probes; ++i) sender_->take_failure(i);
  if (2 * result.found < probes) {
    throw UsrpError("loopback",
                    "the receiver found " + std::to_string(result.found) + " of " +
                        std::to_string(probes) + " probes",
                    "check cables, antennas and frequencies of both ends, then raise the gains");
  }
  const std::lock_guard tracking_lock(shared_->mutex);
  shared_->tracking.begin(results->delays);
  result.delay_samples = shared_->tracking.delay(results->delays.back().first);
  result.drift_ppm = shared_->tracking.drift() * 1e6;
  constexpr double least = 1e-12;
  const double ratio = results->signal / std::max(results->noise, least) - 1;
  result.snr_db = 10 * std::log10(std::max(ratio, least));
  return result;
}

}  // namespace gr::nagi
