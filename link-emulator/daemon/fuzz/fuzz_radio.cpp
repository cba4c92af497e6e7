// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes nagi-link's end of a radio's socket (radio_socket.hpp). Any answers of a radio's process
// either follow the protocol, or end the link by a std::system_error. The input has for each
// answer: a byte, the length, and the answer. If the byte is odd, the expected number of the
// transmission replaces the first four bytes of the answer.
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "daemon/fuzz/frames_bench.hpp"
#include "fuzz/pieces.hpp"

namespace {

using namespace nagi;
using namespace nagi::daemon;

constexpr std::array configs = {
    R"({"rate_bps": 1000000, "delay_ns": 1000, "queue": {"packets": 10}, "loss": {"model": "radio"}})",
    R"({"rate_bps": 1000000, "delay_ns": 1000, "loss": {"model": "radio"}, "arq": {"retries": 2, "feedback_ns": 1000}})",
    R"({"rate_bps": 1200000, "delay_ns": 1000, "loss": {"model": "radio"}, "arq": {"retries": 1, "feedback_ns": 1000},
        "rate_adaptation": {"kind": "snr_table", "min_snr_db": [4, 9],
                            "modes": [{"rate_bps": 1200000, "overhead_bytes": 50}, {"rate_bps": 2400000, "overhead_bytes": 50}]}})",
    R"({"rate_bps": 1200000, "delay_ns": 1000, "loss": {"model": "radio"}, "arq": {"retries": 1, "feedback_ns": 1000},
        "rate_adaptation": {"kind": "minstrel", "modes": [{"rate_bps": 1200000, "overhead_bytes": 50},
                                                          {"rate_bps": 2400000, "overhead_bytes": 50}]}})"};

struct Bench : FramesBench {
  Bench() {
    for (const char* text : ::configs) directions.push_back(direction_config(text));
  }
  std::vector<model::DirectionConfig> directions;
};

/// Read the messages that the link has sent to the radio. Return the number of the last
/// transmission, or `last` if there is no message.
std::uint32_t read_transmissions(int socket, std::uint32_t last) {
  std::array<std::uint8_t, 4096> message{};
  while (recv(socket, message.data(), message.size(), MSG_DONTWAIT) > 0) {
    std::memcpy(&last, message.data(), sizeof last);
  }
  return last;
}

void answer_all(Bench& bench, const model::DirectionConfig& config, fuzz::Pieces input) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  const io::Descriptor radio(ends[0]);
  FuzzPort in(bench.ports.pool());
  FuzzPort out(bench.ports.pool());
  LinkDirection direction(
      0, config, std::make_unique<model::Direction>(config, 1, 0, model::DirectionName::forward),
      std::make_unique<RadioSocket>(ends[1], "fuzz"), in, out, bench.shared());
  const std::array<std::uint8_t, 100> frame{};
  Instant now{Duration{1'000'000}};
  for (int i = 0; i < 5; ++i) in.put(frame, bench.time.monotonic_ns(now));
  std::uint32_t turn = 0;
  std::uint32_t last_sent = 0;
  const auto advance = [&] {
    direction.advance(direction.read_arrivals(now));
    take_due(direction, bench.ports.pool());
    last_sent = read_transmissions(radio.get(), last_sent);
  };
  advance();
  while (!input.is_empty()) {
    now += Duration{1'000'000};
    const bool is_numbered = input.number<std::uint8_t>() % 2 != 0;
    const auto bytes = input.sized();
    std::vector<std::uint8_t> answer(bytes.begin(), bytes.end());
    if (is_numbered && answer.size() >= sizeof turn) {
      std::memcpy(answer.data(), &turn, sizeof turn);
      ++turn;
    }
    if (send(radio.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    advance();
  }
  direction.finish();
  (void)direction.account().dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Bench bench;
  fuzz::Pieces input(data, size);
  const auto& config = bench.directions[input.number<std::uint8_t>() % configs.size()];
  try {
    answer_all(bench, config, input);
  } catch (const std::system_error&) {
  }
  return 0;
}
