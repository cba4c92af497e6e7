// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the server of the applications that send datagrams. The server ignores, counts or answers
// each datagram, and its summary must be valid JSON. An input is a sequence of datagrams, each
// preceded by its length.
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "datagrams/datagram_sink.hpp"
#include "fuzz/pieces.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nagi;
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()) != 0) {
    std::abort();
  }
  const io::Descriptor sender(sockets[0]);
  const io::Descriptor receiver(sockets[1]);
  applications::DatagramSink sink(receiver.get());
  fuzz::Pieces input(data, size);
  std::array<char, 64> answer{};
  while (!input.is_empty()) {
    const auto bytes = input.sized();
    (void)send(sender.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    sink.take_all();
    while (recv(sender.get(), answer.data(), answer.size(), 0) >= 0) {
    }
  }
  const nlohmann::json summary = sink.summarise("G.711", 60'000'000);
  if (summary.at("packets_received") > summary.at("packets_expected")) std::abort();
  (void)summary.dump();
  return 0;
}
