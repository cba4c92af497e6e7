// SPDX-License-Identifier: Apache-2.0
//
// The control socket: a Unix stream socket that only its owner may open. One JSON object a line in,
// one a line out: {"command": "show"} gives {"ok": true, "account": {...}}, {"command": "stop"}
// ends the program in order. What is refused gives {"ok": false, "error": "..."}.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/descriptor.hpp"

namespace nagi::daemon {

using Handler = std::function<nlohmann::json(const nlohmann::json& request)>;

/// The line that answers the request in `line`: what `handler` makes of it; what that refuses by a
/// ConfigError, and what is no request, is answered with an error.
std::string answer(const std::string& line, const Handler& handler);

class ControlServer {
 public:
  /// Listens at `path`. Throws InputError if another program already does, or the path is no good.
  ControlServer(std::string path, Handler handler);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  /// Becomes readable when there is something to serve.
  [[nodiscard]] int descriptor() const { return all_.get(); }
  /// Serves whatever waits; never blocks.
  void serve();

 private:
  struct Client {
    io::Descriptor socket;
    std::string unread;
  };

  void watch(int descriptor);
  void accept_all();
  /// False when the client has gone.
  bool serve(Client& client);

  std::string path_;
  Handler handler_;
  io::Descriptor all_;  // an epoll instance over the listener and the clients
  io::Descriptor listener_;
  std::vector<Client> clients_;
};

/// Sends one request to the program listening at `path` and returns its answer.
/// Throws InputError if nobody listens there.
nlohmann::json ask(const std::string& path, const nlohmann::json& request);

}  // namespace nagi::daemon
