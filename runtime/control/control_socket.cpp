// SPDX-License-Identifier: Apache-2.0
#include "control/control_socket.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "control/json_source.hpp"
#include "io/input_error.hpp"

namespace nagi::runtime {

namespace {

using nlohmann::json;

constexpr std::size_t max_at_once = 8192;     // bytes read from a client per turn
constexpr std::size_t long_line = 64 * 1024;  // bytes
// Maximum number of bytes of unanswered requests in ask_all(). The limit is below the number of
// bytes that a socket accepts before it blocks. Without it, ask_all() would wait for a server that
// does not read, because nobody reads its answers.
constexpr std::size_t max_unanswered = 32 * 1024;
constexpr int backlog = 8;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw InputError(path + ": too long for a control socket; use a path below " +
                     std::to_string(sizeof address.sun_path) + " characters");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

io::Descriptor connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  io::Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.get() < 0) io::throw_errno("cannot open a socket");
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return client;
}

bool send_all(int socket, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t sent = ::send(socket, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

void watch(int all, int operation, int descriptor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  if (epoll_ctl(all, operation, descriptor, &event) != 0) io::throw_errno("epoll");
}

}  // namespace

// An error may quote bytes that are not UTF-8.
std::string line_of(const json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}
std::string refusal(const InputError& error) {
  json answer = {{"ok", false}, {"error", error.what()}};
  if (*error.code() != '\0') answer["code"] = error.code();
  return line_of(answer);
}

std::string answer(const std::string& line, const Handler& handler) {
  try {
    const JsonSource source("control message", line);
    try {
      return line_of(handler(source.value()));
    } catch (const ConfigError& error) {
      throw source.located(error);
    }
  } catch (const InputError& error) {
    return refusal(error);
  }
}

ControlServer::ControlServer(std::string path, Handler handler, std::size_t longest_request,
                             LongHandler long_handler)
    : path_(std::move(path)),
      handler_(std::move(handler)),
      longest_request_(longest_request),
      all_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
      long_handler_(std::move(long_handler)),
      work_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (listener_.get() < 0 || work_.get() < 0) io::throw_errno("cannot open a socket");
  const sockaddr_un address = address_of(path_);
  struct stat existing{};
  if (lstat(path_.c_str(), &existing) == 0) {
    if (!S_ISSOCK(existing.st_mode)) {
      throw InputError(path_ + ": is a file, not a control socket; give another path");
    }
    if (connect_to(path_).get() >= 0) {
      throw InputError(path_ + ": another program listens here; stop it or give another path");
    }
    unlink(path_.c_str());  // a socket of a program that has ended
  }
  const mode_t before = umask(0177);
  const int bound =
      bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  umask(before);
  if (bound != 0) {
    throw InputError(path_ + ": cannot make the control socket: " + std::strerror(errno) +
                     "; give a path in a directory that exists and is yours");
  }
  if (listen(listener_.get(), backlog) != 0) io::throw_errno("cannot listen at " + path_);
  watch(all_.get(), EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
  watch(all_.get(), EPOLL_CTL_ADD, work_.get(), EPOLLIN);
}

ControlServer::~ControlServer() { unlink(path_.c_str()); }

void ControlServer::serve() {
  accept_all();
  std::erase_if(clients_, [this](Client& client) { return !serve(client); });
}

void ControlServer::accept_all() {
  for (;;) {
    io::Descriptor accepted(
        accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.get() < 0) return;
    watch(all_.get(), EPOLL_CTL_ADD, accepted.get(), EPOLLIN);
    clients_.emplace_back().socket = std::move(accepted);
  }
}

bool ControlServer::serve(Client& client) {
  if (busy_ >= 0 && busy_ != client.socket.get()) return true;
  // Read no further requests from a client that does not read its answers.
  if (client.long_request) {
    continue_long(client);
    return true;
  }
  const bool is_connected = client.unsent.empty() ? read_some(client) : true;
  if (!is_connected || !send_some(client)) return false;
  if (client.unsent.empty() == client.waits_for_room) {
    client.waits_for_room = !client.waits_for_room;
    watch(all_.get(), EPOLL_CTL_MOD, client.socket.get(),
          client.waits_for_room ? EPOLLOUT : EPOLLIN);
  }
  return true;
}

bool ControlServer::read_some(Client& client) {
  char buffer[max_at_once];
  const ssize_t got = recv(client.socket.get(), buffer, sizeof buffer, 0);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  if (client.is_refused) return true;
  const std::size_t before = client.unread.size();
  client.unread.append(buffer, static_cast<std::size_t>(got));
  answer_lines(client, before);
  if (client.piece_bytes + client.unread.size() > longest_request_ && !client.long_request) {
    client.unsent +=
        refusal(InputError("a request of more than " + std::to_string(longest_request_) +
                           " bytes; send less per line")) +
        "\n";
    client.unread.clear();
    client.pieces.clear();
    client.is_refused = true;
  }
  return true;
}

void ControlServer::answer_lines(Client& client, std::size_t searched) {
  std::size_t begin = 0;
  for (auto end = client.unread.find('\n', searched); end != std::string::npos && busy_ < 0;
       end = client.unread.find('\n', begin)) {
    std::string line = client.unread.substr(begin, end - begin);
    begin = end + 1;
    if (client.pieces.empty()) {
      client.unsent += answer(line, handler_) + "\n";
    } else {
      client.pieces.push_back(std::move(line));
      begin_long(client);
    }
  }
  client.unread.erase(0, begin);
  // A long line is kept in pieces, because a string that grows is copied repeatedly.
  if (long_handler_ && busy_ < 0 && client.unread.size() > long_line) {
    client.piece_bytes += client.unread.size();
    client.pieces.push_back(std::move(client.unread));
    client.unread.clear();
  }
}

void ControlServer::begin_long(Client& client) {
  client.long_request = long_handler_();
  client.taken = 0;
  busy_ = client.socket.get();
  if (eventfd_write(work_.get(), 1) != 0) io::throw_errno("eventfd");
}

void ControlServer::continue_long(Client& client) {
  const std::string& piece = client.pieces.front();
  auto done = client.long_request->take(std::string_view(piece).substr(client.taken, max_at_once));
  client.taken += max_at_once;
  if (client.taken >= piece.size()) {
    client.pieces.pop_front();
    client.taken = 0;
  }
  if (!done && client.pieces.empty()) done = client.long_request->finish();
  if (!done) return;
  client.unsent += *done + "\n";
  client.long_request.reset();
  client.pieces.clear();
  client.piece_bytes = 0;
  busy_ = -1;
  eventfd_t events = 0;
  if (eventfd_read(work_.get(), &events) != 0) io::throw_errno("eventfd");
  answer_lines(client, 0);  // the lines behind the long request
  // Serve the client again, to send the answer.
  watch(all_.get(), EPOLL_CTL_MOD, client.socket.get(), EPOLLOUT);
  client.waits_for_room = true;
}

bool ControlServer::send_some(Client& client) {
  while (!client.unsent.empty()) {
    const ssize_t sent =
        ::send(client.socket.get(), client.unsent.data(), client.unsent.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent <= 0) return false;
    client.unsent.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

namespace {

/// Return whether an answer follows the protocol.
bool is_answer(const json& answer) {
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) return false;
  return answer["ok"] == true || (answer.contains("error") && answer["error"].is_string());
}

/// The client's end of a connection. It checks all answers, because the server is not trusted.
class Conversation {
 public:
  explicit Conversation(const std::string& path) : path_(path), socket_(connect_to(path)) {
    if (socket_.get() >= 0) return;
    throw InputError(path + ": no program listens here: " + std::strerror(errno) +
                     "; give the control socket of a running program");
  }

  /// Send lines, each with its line end.
  void send(const std::string& lines) {
    if (!send_all(socket_.get(), lines)) throw gone();
  }
  json receive() {
    char buffer[65536];
    std::size_t searched = 0;
    for (;;) {
      const auto end = unread_.find('\n', searched);
      if (end != std::string::npos) {
        json answer = JsonSource(path_, unread_.substr(0, end)).value();
        unread_.erase(0, end + 1);
        if (!is_answer(answer)) {
          throw InputError(path_ + ": not an answer of one of nagi's programs: " + shown(answer) +
                           "; give the control socket of a running program");
        }
        return answer;
      }
      searched = unread_.size();
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw gone();
      unread_.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  [[nodiscard]] InputError gone() const {
    return InputError(path_ + ": the program that listens here gave no answer");
  }

  std::string path_;
  io::Descriptor socket_;
  std::string unread_;
};

}  // namespace

json ask(const std::string& path, const json& request) {
  Conversation conversation(path);
  conversation.send(request.dump() + "\n");
  return conversation.receive();
}

void ask_all(const std::string& path, const std::function<bool(std::string& line)>& next,
             const std::function<void(std::size_t number, const json& answer)>& answered) {
  Conversation conversation(path);
  std::deque<std::size_t> unanswered;  // bytes of each unanswered request
  std::size_t unanswered_bytes = 0;    // bytes of all unanswered requests
  std::size_t answers = 0;
  std::string line;
  std::string batch;
  bool more = next(line);
  while (more || !unanswered.empty()) {
    batch.clear();
    while (more && (unanswered.empty() || unanswered_bytes + line.size() < max_unanswered)) {
      batch += line + "\n";
      unanswered.push_back(line.size() + 1);
      unanswered_bytes += unanswered.back();
      more = next(line);
    }
    if (!batch.empty()) conversation.send(batch);
    // While there are more requests, some stay unanswered, so that the server always has work.
    do {
      answered(answers++, conversation.receive());
      unanswered_bytes -= unanswered.front();
      unanswered.pop_front();
    } while (!unanswered.empty() && (!more || unanswered_bytes > max_unanswered / 2));
  }
}

}  // namespace nagi::runtime
