// SPDX-License-Identifier: Apache-2.0
//
// The control socket: a Unix stream socket that only its owner may open. Requests and answers are
// JSON objects, one per line, in the same order. With nagi-link, {"command": "show"} returns {"ok":
// true, "account": {...}}, and {"command": "stop"} ends the program. The answer to a refused
// request is {"ok": false, "error": "..."}, with a "code" if programs need the reason. An
// incomplete line has no effect. A program may process a long request piece by piece, so that
// packets need not wait. Meanwhile, other clients wait.
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

/// A long request that is being processed.
class LongRequest : public nagi::Interface {
 public:
  /// Process the next piece of the line, some thousand bytes. Return the answer if the rest of the
  /// line cannot change it.
  virtual std::optional<std::string> take(std::string_view piece) = 0;
  /// Return the answer at the end of the line.
  virtual std::string finish() = 0;
};
/// A function that begins a long request.
using LongHandler = std::function<std::unique_ptr<LongRequest>()>;

/// Return the line that answers the request in `line`: the answer of `handler`, or an error if
/// `handler` throws ConfigError or InputError, or if the line is not a request.
std::string answer(const std::string& line, const Handler& handler);
/// Return the line that refuses a request.
std::string refusal(const InputError& error);
/// Return an answer as a line of the protocol.
std::string line_of(const nlohmann::json& answer);

class ControlServer {
 public:
  /// Listen at `path`. A client that sends a line of more than `longest_request` bytes gets an
  /// error, and its further data is ignored. `long_handler`, which may be empty, processes lines of
  /// more than 64 KiB. Throws InputError if another program listens there, or if the path cannot be
  /// used.
  ControlServer(std::string path, Handler handler, std::size_t longest_request = 64 * 1024,
                LongHandler long_handler = {});
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();

  /// Return a descriptor that is readable while serve() has work.
  [[nodiscard]] int descriptor() const { return all_.get(); }
  /// Process a limited amount of each client's data, so that packets need not wait for long. Never
  /// blocks.
  void serve();

 private:
  struct Client {
    io::Descriptor socket;
    std::string unread;                         // begin of a line, or the last part of a long one
    std::deque<std::string> pieces;             // earlier parts of a long line, in order
    std::size_t piece_bytes = 0;                // bytes in `pieces`
    std::unique_ptr<LongRequest> long_request;  // the long request that processes the pieces
    std::size_t taken = 0;                      // processed bytes of the first piece
    std::string unsent;                         // answers for which the socket has no room yet
    bool is_refused = false;  // ignore its data; closing now might lose the message
    bool waits_for_room = false;
  };

  void accept_all();
  // These three functions return false when the client has closed the connection.
  bool serve(Client& client);
  bool read_some(Client& client);
  bool send_some(Client& client);
  /// Answer the complete lines up to the first long line. The first `searched` bytes of `unread`
  /// contain no line end.
  void answer_lines(Client& client, std::size_t searched);
  /// Begin to process the long request in `pieces`. Other clients then wait.
  void begin_long(Client& client);
  /// Process the next piece of the long request, and answer it at its end.
  void continue_long(Client& client);

  std::string path_;
  Handler handler_;
  std::size_t longest_request_;
  io::Descriptor all_;  // an epoll instance over the listener and the clients
  io::Descriptor listener_;
  LongHandler long_handler_;
  io::Descriptor work_;  // an eventfd that is readable while a long request is processed
  int busy_ = -1;        // the socket of the client with a long request, or -1
  std::vector<Client> clients_;
};

/// Send one request to the program that listens at `path` and return its answer. Throws InputError
/// if no program listens there.
nlohmann::json ask(const std::string& path, const nlohmann::json& request);

/// Send many requests. `next` writes the next request, one line of JSON, into `line`, and returns
/// false if there is none. Call `answered` for each answer in order, with the number of the request
/// from 0. Throws InputError if no program listens there, or if it closes the connection before the
/// last answer.
void ask_all(const std::string& path, const std::function<bool(std::string& line)>& next,
             const std::function<void(std::size_t number, const nlohmann::json& answer)>& answered);

}  // namespace nagi::runtime
