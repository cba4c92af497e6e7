// SPDX-License-Identifier: Apache-2.0
//
// The control socket: a Unix stream socket that only its owner may open. One JSON object a line in,
// one a line out, in order. nagi-link: {"command": "show"} gives {"ok": true, "account": {...}},
// {"command": "stop"} ends the program in order. What is refused gives {"ok": false, "error":
// "..."}, and "code" where programs are to know why. A request that has not come whole has not
// come: a client that goes in the middle of a line changes nothing. A long one may be answered
// piece by piece, lest packets wait; other clients wait until it is.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.hpp"
#include "io/descriptor.hpp"
#include "io/input_error.hpp"

namespace nagi::runtime {

using Handler = std::function<nlohmann::json(const nlohmann::json& request)>;

/// A long request being answered.
class LongRequest : public nagi::Interface {
 public:
  /// Takes the next piece of its line, of some thousand bytes, and does what there is to do about
  /// it. Returns the answer, if what is to come cannot change it.
  virtual std::optional<std::string> take(std::string_view piece) = 0;
  /// The line is over: returns the answer.
  virtual std::string finish() = 0;
};
/// Begins to answer a long request.
using LongHandler = std::function<std::unique_ptr<LongRequest>()>;

/// The line that answers the request in `line`: what `handler` makes of it; what that refuses by a
/// ConfigError, and what is no request, is answered with an error.
std::string answer(const std::string& line, const Handler& handler);
/// The line that says that a request is refused.
std::string refusal(const InputError& error);
/// A line of the protocol.
std::string line_of(const nlohmann::json& answer);

class ControlServer {
 public:
  /// Listens at `path`. Throws InputError if another program already does, or the path is no good.
  /// `longest_request`: bytes of a line; a client that sends more is told so, and not
  /// heard any more. `long_handler`: for lines of more than 64 KiB; may be empty.
  ControlServer(std::string path, Handler handler, std::size_t longest_request = 64 * 1024,
                LongHandler long_handler = {});
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  /// Becomes readable when there is something to serve.
  [[nodiscard]] int descriptor() const { return all_.get(); }
  /// Serves of what waits a little of each client's, lest packets wait long; never blocks.
  void serve();

 private:
  struct Client {
    io::Descriptor socket;
    std::string unread;                      // the beginning of a line, or its end:
    std::deque<std::string> pieces;          // of a long one, what comes before
    std::size_t piece_bytes = 0;             // in all of them
    std::unique_ptr<LongRequest> under_way;  // that has the pieces, one after another
    std::size_t taken = 0;                   // of the first piece
    std::string unsent;                      // answers that the client has not made room for
    bool is_refused = false;  // what it sends is thrown away: closed at once, it might not hear why
    bool waits_for_room = false;
  };

  void accept_all();
  /// False when the client has gone.
  bool serve(Client& client);
  /// The same.
  bool read_some(Client& client);
  bool send_some(Client& client);
  /// Answers the lines that are whole, to a long one.
  void answer_lines(Client& client, std::size_t looked_at);
  void begin_long(Client& client);
  void go_on(Client& client);

  std::string path_;
  Handler handler_;
  std::size_t longest_request_;
  io::Descriptor all_;  // an epoll instance over the listener and the clients
  io::Descriptor listener_;
  LongHandler long_handler_;
  io::Descriptor more_;  // an eventfd: readable while a long request is under way
  int busy_ = -1;        // the socket that it came by
  std::vector<Client> clients_;
};

/// Sends one request to the program listening at `path` and returns its answer.
/// Throws InputError if nobody listens there.
nlohmann::json ask(const std::string& path, const nlohmann::json& request);

/// Sends many requests, each a line of JSON, and hands on the answers in their order, with the
/// number of the request (from 0). `next` returns false after the last. Throws InputError if nobody
/// listens there, or who does goes before the last answer.
void ask_all(const std::string& path, const std::function<bool(std::string& line)>& next,
             const std::function<void(std::size_t number, const nlohmann::json& answer)>& answered);

}  // namespace nagi::runtime
