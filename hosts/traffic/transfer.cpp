// SPDX-License-Identifier: Apache-2.0
#include "applications.hpp"
#include "sink.hpp"
#include "sized_transfer.hpp"

namespace nagi::applications {

using nlohmann::json;

json transfer_client(const Ends& ends, const Transfer& settings) {
  Waiter waiter;
  json result = result_of("transfer", "client");
  SizedTransfer transfer(ends, settings.size_bytes);
  const std::int64_t deadline = after(transfer.started_ns(), settings.max_duration_ns);
  try {
    while (transfer.ended() == nullptr) {
      std::vector<pollfd> watched = {transfer.watched()};
      if (waiter.wait(watched, deadline)) {
        transfer.handle(watched[0].revents);
      } else {
        transfer.give_up("maximum duration");
      }
    }
  } catch (const Stopped&) {
    transfer.give_up("stopped");
  }
  result.update({{"size_bytes", settings.size_bytes},
                 {"connect_s", seconds_or_null(transfer.connect_ns())},
                 {"completed", transfer.completion_ns().has_value()},
                 {"completion_s", seconds_or_null(transfer.completion_ns())},
                 {"duration_s", seconds_or_null(transfer.completion_ns().value_or(
                                    now_ns() - transfer.started_ns()))},
                 {"ended", transfer.ended()}});
  return result;
}

json transfer_server(const Ends& ends) { return one_connection("transfer", ends); }

}  // namespace nagi::applications
