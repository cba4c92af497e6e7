/* SPDX-License-Identifier: Apache-2.0 */
//
// Cables of this process: what outputs sent, for inputs that ask for it at an instant. Two devices
// on one cable each have a clock of their own, so what they sample lies between samples.
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <uhd/types/time_spec.hpp>
#include <vector>

#include "device_clock.hpp"

namespace nagi::uhd_double {

using Sample = std::complex<float>;

/// One burst, as it leaves an output.
struct Emission {
  const DeviceClock* clock = nullptr;  // only to tell clocks apart
  uhd::time_spec_t begin;              // of that clock
  Instant at;
  double rate_hz = 0;  // nominal
  double true_rate_hz = 0;
  double carrier_hz = 0;  // true
  double full_scale_dbm = 0;
  std::vector<Sample> samples;
};

/// Who asks: `count` samples from an instant on.
struct Reception {
  const DeviceClock* clock = nullptr;
  uhd::time_spec_t begin;
  Instant at;
  double rate_hz = 0;
  double true_rate_hz = 0;
  double carrier_hz = 0;
  double full_scale_dbm = 0;  // at the end of the cable
};

class Cable {
 public:
  /// The cable of that name; it lasts as long as somebody holds it.
  static std::shared_ptr<Cable> named(const std::string& name);

  /// An emission begins; the caller goes on with `append`.
  std::uint64_t begin(Emission emission);
  void append(std::uint64_t emission, std::span<const Sample> samples);
  /// It was longer than what went out: takes off what was to come after `count` samples.
  void cut(std::uint64_t emission, std::size_t count);

  /// Adds to `samples` what is on the cable then.
  void add_to(std::span<Sample> samples, const Reception& reception) const;

 private:
  void forget(std::int64_t before_ns);

  mutable std::mutex mutex_;
  std::uint64_t first_ = 0;  // number of the first of:
  std::deque<Emission> emissions_;
};

}  // namespace nagi::uhd_double
