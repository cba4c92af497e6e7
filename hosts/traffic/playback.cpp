// SPDX-License-Identifier: Apache-2.0
#include "arithmetic/playback.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "applications.hpp"
#include "io/input_error.hpp"

namespace nagi::applications {

using nlohmann::json;

std::uint64_t PlaybackSettings::chunk_bytes() const {
  const double bytes = static_cast<double>(rate_bps) / 8 * static_cast<double>(interval_ns) / 1e9;
  if (bytes < 1) throw InputError("less than a byte is played at each attempt; raise --rate");
  return static_cast<std::uint64_t>(bytes + 0.5);
}

json playback_client(const Ends& ends, const PlaybackSettings& settings) {
  Waiter waiter;
  json result = result_of("playback", "client");
  const std::uint64_t chunk = settings.chunk_bytes();
  std::uint64_t sent = 0;
  json connect_s;
  const char* ended = "stopped";
  std::int64_t start = now_ns();
  const io::Descriptor socket = begin_connecting(ends);
  try {
    if (finish_connecting(socket.get(), waiter, never) != Connecting::done) {
      ended = "given up";
    } else {
      connect_s = seconds(now_ns() - start);
      start = now_ns();
      std::int64_t next = start;  // instant at which the source has the next chunk
      std::uint64_t offered = settings.ahead ? settings.size_bytes : 0;
      while (sent < settings.size_bytes) {
        const std::int64_t now = now_ns();
        while (!settings.ahead && next <= now && offered < settings.size_bytes) {
          offered += std::min(chunk, settings.size_bytes - offered);
          next = after(next, settings.interval_ns);
        }
        if (sent < offered) {
          const std::int64_t accepted = send_filler(socket.get(), offered - sent);
          if (accepted < 0) break;
          sent += static_cast<std::uint64_t>(accepted);
          if (accepted > 0) continue;
        }
        const auto requested = static_cast<short>(sent < offered ? POLLOUT : 0);
        const bool has_more = !settings.ahead && offered < settings.size_bytes;
        const short events = waiter.wait(socket.get(), requested, has_more ? next : never);
        if ((events & (POLLERR | POLLHUP)) != 0) break;
      }
      ended = sent == settings.size_bytes ? "complete" : "connection broken";
    }
  } catch (const Stopped&) {
    ended = "stopped";
    set_break_at_close(socket.get(), true);
  }
  result.update(
      {{"size_bytes", settings.size_bytes == unlimited ? json() : json(settings.size_bytes)},
       {"connect_s", connect_s},
       {"sent_bytes", sent},
       {"ended", ended}});
  return result;
}

json playback_server(const Ends& ends, const PlaybackSettings& settings) {
  Waiter waiter;
  json result = result_of("playback", "server");
  const std::uint64_t chunk = settings.chunk_bytes();
  Playback playback(chunk);
  std::uint64_t read = 0;
  json first_s;
  const char* ended = "stopped";
  const std::int64_t start = now_ns();
  const io::Descriptor listener = listen_tcp(ends);
  try {
    const io::Descriptor connection = accept_tcp(listener.get(), waiter);
    waiter.wait(connection.get(), POLLIN);
    const std::int64_t first = now_ns();
    first_s = seconds(first - start);
    // The kernel's buffer must hold the bytes that one attempt reads.
    const int min_bytes = static_cast<int>(chunk);
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &min_bytes, sizeof min_bytes);
    std::int64_t next =
        after(first, settings.wait_ns == unlimited ? settings.interval_ns : settings.wait_ns);
    while (!playback.finished()) {
      waiter.sleep(next);
      std::uint64_t available = readable_bytes(connection.get());
      bool stream_ended = read + available >= settings.size_bytes;
      if (!stream_ended && available < chunk) {
        stream_ended = has_ended(connection.get());
        available = readable_bytes(connection.get());  // final if the stream has ended
      }
      std::uint64_t remaining = playback.attempt(available, stream_ended);
      while (remaining > 0) {
        const std::int64_t count = drop_received(connection.get(), remaining);
        if (count <= 0) break;
        read += static_cast<std::uint64_t>(count);
        remaining -= static_cast<std::uint64_t>(count);
      }
      if (read >= settings.size_bytes) break;
      next = after(next, settings.interval_ns);
    }
    const bool is_complete = settings.size_bytes == unlimited || read >= settings.size_bytes;
    ended = is_complete ? "complete" : "connection broken";
  } catch (const Stopped&) {
    ended = "stopped";
  }
  const std::uint64_t attempts = playback.attempts();
  const double share = static_cast<double>(playback.successes()) / static_cast<double>(attempts);
  result.update({{"chunk_bytes", chunk},
                 {"interval_s", static_cast<double>(settings.interval_ns) / 1e9},
                 {"first_byte_s", first_s},
                 {"attempts", attempts},
                 {"successes", playback.successes()},
                 {"success_share", attempts == 0 ? json() : json(share)},
                 {"read_bytes", read},
                 {"ended", ended}});
  return result;
}

}  // namespace nagi::applications
