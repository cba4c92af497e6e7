// SPDX-License-Identifier: Apache-2.0
//
// Trying rates with the help of the other end. A probe is a train of datagrams at a rate. Behind it
// questions go the same way, so when one is answered no packet of the train is queued any more.
#pragma once

#include <cstdint>

#include "arithmetic/rate_search.hpp"
#include "arithmetic/reception.hpp"
#include "datagrams/datagram.hpp"

namespace nagi::applications {

/// Looks for the largest rate of IP packets that is carried, up to `max_bps`, for `span_ns` at
/// most. Throws Stopped, and std::runtime_error if nothing is answered.
RateSearch search_rate(Datagrams& sending, Waiter& waiter, double max_bps, std::uint64_t span_ns);

/// The other end.
class ProbedEnd {
 public:
  explicit ProbedEnd(int socket) : socket_(socket) {}
  /// A datagram of a probe, or a question, which is answered.
  void take(const ReceivedDatagram& datagram);

 private:
  int socket_;
  std::uint64_t probe_ = 0;  // that `received_` is of
  Reception received_;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace nagi::applications
