// SPDX-License-Identifier: Apache-2.0
//
// Probing of rates. A probe is a train of datagrams at a given rate. After the train, the sender
// asks the receiver how much of it arrived. The question takes the same path. So when the answer
// arrives, no packet of the train is in a queue any more.
#pragma once

#include <cstdint>

#include "arithmetic/rate_search.hpp"
#include "arithmetic/reception.hpp"
#include "datagrams/datagram.hpp"

namespace nagi::applications {

/// Search for the largest rate of IP packets that the path carries, up to `max_bps`, for at most
/// `span_ns`. Throws Stopped, or std::runtime_error if the server answers no question.
RateSearch search_rate(Datagrams& sending, Waiter& waiter, double max_bps, std::uint64_t span_ns);

/// The receiver of probes.
class ProbedEnd {
 public:
  explicit ProbedEnd(int socket) : socket_(socket) {}
  /// Count a datagram of a probe, or answer a question.
  void take(const ReceivedDatagram& datagram);

 private:
  int socket_;
  std::uint64_t probe_ = 0;  // number of the probe that `received_` describes
  Reception received_;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace nagi::applications
