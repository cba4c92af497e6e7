/* SPDX-License-Identifier: Apache-2.0 */
//
// Cables within this process. A cable stores the samples that outputs send. Inputs request samples
// from an instant on. Two devices on one cable have different clocks, so the requested samples are
// interpolated between the sent samples.
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

/// One burst that leaves an output.
struct Emission {
  const DeviceClock* clock = nullptr;  // only to distinguish clocks
  uhd::time_spec_t begin;              // by `clock`
  Instant at;
  double rate_hz = 0;  // nominal rate
  double true_rate_hz = 0;
  double carrier_hz = 0;  // true frequency
  double full_scale_dbm = 0;
  std::vector<Sample> samples;
};

/// A request for samples from an instant on.
struct Reception {
  const DeviceClock* clock = nullptr;
  uhd::time_spec_t begin;
  Instant at;
  double rate_hz = 0;
  double true_rate_hz = 0;
  double carrier_hz = 0;
  double full_scale_dbm = 0;  // at the end of the cable, dBm
};

class Cable {
 public:
  /// Return the cable of this name. The cable exists until its last user releases it.
  static std::shared_ptr<Cable> named(const std::string& name);

  /// Begin an emission and return its number. The caller adds samples by `append`.
  std::uint64_t begin(Emission emission);
  void append(std::uint64_t emission, std::span<const Sample> samples);
  /// Shorten an emission to its first `count` samples, because the other samples are not sent.
  void cut(std::uint64_t emission, std::size_t count);

  /// Add the samples on the cable at the instants of `reception` to `samples`.
  void add_to(std::span<Sample> samples, const Reception& reception) const;

 private:
  void forget(std::int64_t before_ns);

  mutable std::mutex mutex_;
  std::uint64_t first_ = 0;  // number of the first emission in `emissions_`
  std::deque<Emission> emissions_;
};

}  // namespace nagi::uhd_double
