// SPDX-License-Identifier: Apache-2.0
//
// Transfers that arrive as a Poisson process, each over its own connection.
#include <list>

#include "applications.hpp"
#include "sink.hpp"
#include "sized_transfer.hpp"

namespace nagi::applications {

using nlohmann::json;

namespace {

constexpr std::size_t max_at_once = 900;  // connections; a process may have 1024 descriptors

/// Return [start, size in bytes, completion time] of a transfer; times in seconds.
json to_json(const SizedTransfer& transfer, std::int64_t start) {
  return {seconds(transfer.started_ns() - start), transfer.size_bytes(),
          seconds_or_null(transfer.completion_ns())};
}

}  // namespace

json poisson_client(const Ends& ends, const Poisson& settings) {
  Waiter waiter;
  json result = result_of("poisson", "client");
  settings.sizes.check();
  // Arrivals and sizes have separate streams, so that a change of one does not affect the other.
  Draws arrivals(settings.seed.seed, settings.seed.stream + "/arrivals");
  Draws sizes(settings.seed.seed, settings.seed.stream + "/sizes");
  const auto mean = static_cast<double>(settings.interval_ns);
  std::list<SizedTransfer> active_transfers;
  json transfers = json::array();
  std::uint64_t skipped = 0;
  const std::int64_t start = now_ns();
  double next = arrivals.exponential(mean);  // ns since the start
  try {
    while (true) {
      std::vector<pollfd> watched;
      for (const SizedTransfer& transfer : active_transfers) watched.push_back(transfer.watched());
      const std::int64_t next_arrival = start + static_cast<std::int64_t>(next);
      waiter.wait(watched, next_arrival);
      std::size_t index = 0;
      for (auto transfer = active_transfers.begin(); transfer != active_transfers.end();) {
        const short events = watched[index++].revents;
        if (events != 0) transfer->handle(events);
        if (transfer->ended() == nullptr) {
          ++transfer;
        } else {
          transfers.push_back(to_json(*transfer, start));
          transfer = active_transfers.erase(transfer);
        }
      }
      if (now_ns() < next_arrival) continue;
      const std::uint64_t size = settings.sizes.draw(sizes);
      if (active_transfers.size() < max_at_once) {
        active_transfers.emplace_back(ends, size);
      } else {
        ++skipped;
      }
      next += arrivals.exponential(mean);
    }
  } catch (const Stopped&) {
    for (SizedTransfer& transfer : active_transfers) {
      transfer.give_up("stopped");
      transfers.push_back(to_json(transfer, start));
    }
  }
  result.update({{"transfers", transfers}, {"skipped", skipped}, {"ended", "stopped"}});
  return result;
}

json poisson_server(const Ends& ends) { return all_connections("poisson", ends); }

}  // namespace nagi::applications
