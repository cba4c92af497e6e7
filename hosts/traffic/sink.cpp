// SPDX-License-Identifier: Apache-2.0
#include "sink.hpp"

#include <sys/socket.h>

#include <list>

namespace nagi::applications {

using nlohmann::json;

namespace {

constexpr std::size_t max_read_bytes = 1 << 20;

}  // namespace

json one_connection(const char* application, const Ends& ends) {
  Waiter waiter;
  json result = result_of(application, "server");
  std::uint64_t received = 0;
  json accepted_s;
  json first_s;
  json last_s;
  const char* ended = "stopped";
  const std::int64_t start = now_ns();
  const io::Descriptor listener = listen_tcp(ends);
  try {
    const io::Descriptor connection = accept_tcp(listener.get(), waiter);
    accepted_s = seconds(now_ns() - start);
    while (true) {
      waiter.wait(connection.get(), POLLIN);
      const std::int64_t count = drop_received(connection.get(), max_read_bytes);
      if (count == 0 || count == -1) {
        ended = count == 0 ? "complete" : "connection broken";
        break;
      }
      if (count > 0) {
        last_s = seconds(now_ns() - start);
        if (first_s.is_null()) first_s = last_s;
        received += static_cast<std::uint64_t>(count);
      }
    }
  } catch (const Stopped&) {
  }
  result.update({{"received_bytes", received},
                 {"accepted_s", accepted_s},
                 {"first_byte_s", first_s},
                 {"last_byte_s", last_s},
                 {"ended", ended}});
  return result;
}

json all_connections(const char* application, const Ends& ends) {
  Waiter waiter;
  json result = result_of(application, "server");
  std::uint64_t received = 0;
  std::uint64_t accepted = 0;
  std::uint64_t closed = 0;
  const io::Descriptor listener = listen_tcp(ends);
  std::list<io::Descriptor> connections;
  try {
    while (true) {
      std::vector<pollfd> watched = {{listener.get(), POLLIN, 0}};
      for (const io::Descriptor& connection : connections)
        watched.push_back({connection.get(), POLLIN, 0});
      waiter.wait(watched);
      std::size_t index = 1;
      for (auto connection = connections.begin(); connection != connections.end();) {
        if (watched[index++].revents == 0) {
          ++connection;
          continue;
        }
        const std::int64_t count = drop_received(connection->get(), max_read_bytes);
        if (count > 0) received += static_cast<std::uint64_t>(count);
        closed += count == 0 ? 1 : 0;
        connection =
            count == 0 || count == -1 ? connections.erase(connection) : std::next(connection);
      }
      if (watched[0].revents != 0) {
        connections.push_back(accept_tcp(listener.get(), waiter));
        ++accepted;
      }
    }
  } catch (const Stopped&) {
  }
  result.update({{"received_bytes", received},
                 {"connections", accepted},
                 {"connections_complete", closed},
                 {"ended", "stopped"}});
  return result;
}

}  // namespace nagi::applications
