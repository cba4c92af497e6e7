// SPDX-License-Identifier: Apache-2.0
#include "native/loss_pattern.hpp"

#include <utility>

namespace nagi::captures {

void LossPattern::add(bool lost, std::int64_t time_ns) {
  if (packets_ == 0) gap_first_ns_ = time_ns;
  const std::int64_t at = packets_++;
  last_ns_ = time_ns;
  if (!lost) {
    if (run_ != 0) ++runs_[std::exchange(run_, 0)];
    return;
  }
  ++run_;
  if (cluster_lost_ != 0 && at - cluster_last_ > min_gap_packets) end_cluster();
  if (cluster_lost_ == 0) {
    cluster_first_ = at;
    cluster_first_ns_ = time_ns;
  }
  ++cluster_lost_;
  cluster_last_ = at;
  cluster_last_ns_ = time_ns;
}

void LossPattern::end_cluster() {
  if (cluster_lost_ == 1) {
    ++gaps_.lost;
  } else if (cluster_lost_ > 1) {
    end_gap(cluster_first_, cluster_first_ns_);
    ++bursts_.count;
    bursts_.lost += cluster_lost_;
    bursts_.packets += cluster_last_ - cluster_first_ + 1;
    bursts_.time_ns += static_cast<double>(cluster_last_ns_ - cluster_first_ns_);
    gap_first_ = cluster_last_ + 1;
    gap_first_ns_ = cluster_last_ns_;
  }
  cluster_lost_ = 0;
}

void LossPattern::end_gap(std::int64_t at, std::int64_t time_ns) {
  if (at == gap_first_) return;
  ++gaps_.count;
  gaps_.packets += at - gap_first_;
  gaps_.time_ns += static_cast<double>(time_ns - gap_first_ns_);
}

void LossPattern::finish() {
  if (run_ != 0) ++runs_[std::exchange(run_, 0)];
  end_cluster();
  end_gap(packets_, last_ns_);
}
}  // namespace nagi::captures
