// SPDX-License-Identifier: Apache-2.0
#include "model/delay.hpp"

#include <cmath>

namespace nagi::model {

Duration Delay::of(std::uint64_t index, Instant sent) const {
  const auto* constant = std::get_if<Duration>(&delay_);
  const Duration base = constant ? *constant : std::get<Trace<Duration>>(delay_).at(sent).value;
  return std::max(base + jitter(index), Duration::zero());
}

Duration Delay::least() const {
  const auto* constant = std::get_if<Duration>(&delay_);
  if (constant == nullptr || std::holds_alternative<NormalJitter>(jitter_)) return Duration::zero();
  if (const auto* uniform = std::get_if<UniformJitter>(&jitter_)) {
    return std::max(*constant - uniform->half_width, Duration::zero());
  }
  return *constant;
}

Duration Delay::jitter(std::uint64_t index) const {
  if (const auto* uniform = std::get_if<UniformJitter>(&jitter_)) {
    using Wide = unsigned __int128;
    const auto width = static_cast<std::uint64_t>(uniform->half_width.count()) * 2;
    const auto drawn = static_cast<std::int64_t>((Wide{stream_.draw(index)} * width) >> 64);
    return Duration{drawn} - uniform->half_width;
  }
  if (const auto* normal = std::get_if<NormalJitter>(&jitter_)) {
    const double deviates = standard_normal(stream_.draw(index));
    return Duration{std::llround(deviates * static_cast<double>(normal->deviation.count()))};
  }
  if (const auto* exponential_jitter = std::get_if<ExponentialJitter>(&jitter_)) {
    return exponential(stream_.draw(index),
                       static_cast<std::uint64_t>(exponential_jitter->mean.count()) * 1000);
  }
  return Duration::zero();
}

}  // namespace nagi::model
