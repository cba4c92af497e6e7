// SPDX-License-Identifier: Apache-2.0
#include "daemon/control.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "daemon/json_source.hpp"
#include "io/input_error.hpp"

namespace nagi::daemon {

namespace {

using nlohmann::json;

constexpr std::size_t longest_request = 64 * 1024;
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

}  // namespace

std::string answer(const std::string& line, const Handler& handler) {
  json answer;
  try {
    const JsonSource source("control message", line);
    try {
      answer = handler(source.value());
    } catch (const model::ConfigError& error) {
      throw source.located(error);
    }
  } catch (const InputError& error) {
    answer = {{"ok", false}, {"error", error.what()}};
  }
  // An error may quote bytes that are no UTF-8.
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

ControlServer::ControlServer(std::string path, Handler handler)
    : path_(std::move(path)),
      handler_(std::move(handler)),
      all_(epoll_create1(EPOLL_CLOEXEC)),
      listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (listener_.get() < 0) io::throw_errno("cannot open a socket");
  const sockaddr_un address = address_of(path_);
  struct stat existing{};
  if (lstat(path_.c_str(), &existing) == 0) {
    if (!S_ISSOCK(existing.st_mode)) {
      throw InputError(path_ + ": is a file, not a control socket; give another path");
    }
    if (connect_to(path_).get() >= 0) {
      throw InputError(path_ + ": another program listens here; stop it or give another path");
    }
    unlink(path_.c_str());  // left over from a program that died
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
  watch(listener_.get());
}

ControlServer::~ControlServer() { unlink(path_.c_str()); }

void ControlServer::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(all_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) io::throw_errno("epoll");
}

void ControlServer::serve() {
  accept_all();
  std::erase_if(clients_, [this](Client& client) { return !serve(client); });
}

void ControlServer::accept_all() {
  for (;;) {
    io::Descriptor accepted(
        accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.get() < 0) return;
    watch(accepted.get());
    clients_.push_back({std::move(accepted), {}});
  }
}

bool ControlServer::serve(Client& client) {
  char buffer[4096];
  for (;;) {
    const ssize_t got = recv(client.socket.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    client.unread.append(buffer, static_cast<std::size_t>(got));
    for (auto end = client.unread.find('\n'); end != std::string::npos;
         end = client.unread.find('\n')) {
      const std::string line = client.unread.substr(0, end);
      client.unread.erase(0, end + 1);
      if (!send_all(client.socket.get(), answer(line, handler_) + "\n")) return false;
    }
    if (client.unread.size() > longest_request) return false;
  }
}

json ask(const std::string& path, const json& request) {
  const io::Descriptor client = connect_to(path);
  if (client.get() < 0) {
    throw InputError(path + ": nobody listens here: " + std::strerror(errno) +
                     "; give the control socket of a running program");
  }
  std::string answer;
  if (send_all(client.get(), request.dump() + "\n")) {
    char buffer[65536];
    while (answer.find('\n') == std::string::npos) {
      const ssize_t got = recv(client.get(), buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  if (answer.empty()) throw InputError(path + ": the program there gave no answer");
  return json::parse(answer);
}

}  // namespace nagi::daemon
