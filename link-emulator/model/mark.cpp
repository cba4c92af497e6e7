// SPDX-License-Identifier: Apache-2.0
#include "model/mark.hpp"

namespace nagi::model {

bool QueueAverage::is_over(Packets packets, Bytes bytes) {
  const auto* in_bytes = std::get_if<Bytes>(&config_.threshold);
  const auto length = static_cast<double>(in_bytes ? bytes.count : packets.count);
  const auto threshold =
      static_cast<double>(in_bytes ? in_bytes->count : std::get<Packets>(config_.threshold).count);
  average_ += config_.weight * (length - average_);
  return average_ > threshold;
}

void QueueAverage::idle(std::uint64_t packets) {
  // (1 - weight)^packets by repeated squaring: the same to the last bit everywhere.
  double power = 1 - config_.weight;
  for (; packets != 0; packets >>= 1) {
    if ((packets & 1) != 0) average_ *= power;
    power *= power;
  }
}

}  // namespace nagi::model
