// SPDX-License-Identifier: Apache-2.0
#include "events.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "../glue/event.h"
#include "io/input_error.hpp"

namespace nagi::tcp {
namespace {

using nlohmann::json;

constexpr std::uint32_t no_threshold = 0x7fffffff;  // TCP_INFINITE_SSTHRESH

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const char* event_name(const nagi_event& event) {
  switch (event.kind) {
    case NAGI_STARTED:
      return "started";
    case NAGI_THREE_DUPLICATES:
      return "three_duplicates";
    case NAGI_PARTIAL_ACK:
      return "partial_ack";
    case NAGI_TIMEOUT:
      return "timeout";
    case NAGI_CONGESTION_MARK:
      return "congestion_mark";
    case NAGI_FALLBACK:
      return "fallback";
    case NAGI_SAMPLE:
      return "sample";
    default:
      return "unknown";
  }
}

json verdict_name(const nagi_event& event) {
  switch (event.verdict) {
    case NAGI_CONGESTION:
      return "congestion";
    case NAGI_CHANNEL:
      return "channel";
    case NAGI_UNDECIDED:
      return "undecided";
    default:
      return nullptr;
  }
}

json threshold_to_json(std::uint32_t segments) {
  return segments == no_threshold ? json(nullptr) : json(segments);
}

json to_json(const nagi_event& event) {
  return {{"event", event_name(event)},
          {"t_ns", event.at_ns},
          {"local_port", event.local_port},
          {"remote_port", event.remote_port},
          {"verdict", verdict_name(event)},
          {"una", event.una},
          {"next", event.next},
          {"flight", event.flight},
          {"cwnd_before", event.cwnd_before},
          {"cwnd", event.cwnd},
          {"ssthresh_before", threshold_to_json(event.ssthresh_before)},
          {"ssthresh", threshold_to_json(event.ssthresh)},
          {"rtt_us", event.rtt_us},
          {"min_rtt_us", event.min_rtt_us},
          {"bandwidth_bytes_per_second", event.bandwidth},
          {"backlog_segments", event.backlog_milli / 1000.0}};
}

}  // namespace

EventFile::EventFile(const std::string& path)
    : path_(path),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      ring_(nullptr, &ring_buffer__free) {
  if (file_.get() < 0) {
    throw InputError(path + ": cannot write events: " + std::strerror(errno) +
                     "; give a path in a directory that exists and is yours");
  }
}

void EventFile::listen(int ring, const volatile std::uint64_t* lost, json opened) {
  ring_.reset(ring_buffer__new(ring, &EventFile::append_event, this, nullptr));
  if (!ring_) io::throw_errno("opening the ring buffer of events");
  lost_ = lost;
  opened["event"] = "opened";
  opened["t_ns"] = now_ns(CLOCK_MONOTONIC);
  opened["realtime_ns"] = now_ns(CLOCK_REALTIME);
  append(opened);
  flush();
}

int EventFile::descriptor() const { return ring_buffer__epoll_fd(ring_.get()); }

int EventFile::append_event(void* self, void* data, std::size_t size) {
  auto& file = *static_cast<EventFile*>(self);
  nagi_event event{};
  std::memcpy(&event, data, std::min(size, sizeof event));
  ++file.reported_;
  file.append(to_json(event));
  return 0;
}

void EventFile::append(const json& line) { text_ += line.dump() + "\n"; }

void EventFile::write() {
  ring_buffer__consume(ring_.get());
  const std::uint64_t lost = *lost_;
  if (lost > lost_written_) {
    append({{"event", "lost"}, {"t_ns", now_ns(CLOCK_MONOTONIC)}, {"count", lost - lost_written_}});
    lost_written_ = lost;
  }
  flush();
}

void EventFile::flush() {
  std::size_t written = 0;
  while (written < text_.size()) {
    const ssize_t more = ::write(file_.get(), text_.data() + written, text_.size() - written);
    if (more < 0 && errno != EINTR) io::throw_errno("writing " + path_);
    if (more > 0) written += static_cast<std::size_t>(more);
  }
  text_.clear();
}

std::uint64_t EventFile::close() {
  write();
  append({{"event", "closed"},
          {"t_ns", now_ns(CLOCK_MONOTONIC)},
          {"told", reported_},
          {"lost", lost_written_}});
  flush();
  return lost_written_;
}

}  // namespace nagi::tcp
