// SPDX-License-Identifier: Apache-2.0
#include "datagrams/rate_probes.hpp"

#include <endian.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace nagi::applications {
namespace {

// Share of the time of a search that one train takes. The rest of the time is for the answers.
constexpr double share_of_a_train = 0.7 / static_cast<double>(RateSearch::max_probes);
// Length of the train that confirms the rate, relative to other trains.
constexpr double confirming_trains = 3;
constexpr double min_train = 10;  // packets
// The time from a question to its first repetition, in ns. It doubles with each repetition.
constexpr std::int64_t first_timeout = 100'000'000;
constexpr double max_to_first = 64;  // ratio of the largest rate to the first
constexpr unsigned place_in_train_bits = 32;

/// The server's answer about a probe: three numbers of 8 bytes, big endian. They are the number of
/// the probe, the number of packets that arrived, and the nanoseconds from the first to the last
/// arrival.
using Answer = std::array<std::uint64_t, 3>;
enum : std::size_t { probe_index, packets_index, span_index };

/// Request the answer about a probe. Return nothing if no answer arrives by `end_ns`.
std::optional<Answer> request_answer(Datagrams& sending, Waiter& waiter, std::uint64_t probe,
                                     std::int64_t end_ns) {
  for (std::int64_t timeout = first_timeout; now_ns() < end_ns; timeout *= 2) {
    sending.send(Kind::question, probe, waiter);
    const std::int64_t until = std::min(now_ns() + timeout, end_ns);
    while (now_ns() < until) {
      waiter.wait(sending.socket(), POLLIN, until);
      Answer values{};
      const ssize_t size = recv(sending.socket(), values.data(), sizeof values, MSG_DONTWAIT);
      if (size != static_cast<ssize_t>(sizeof values)) continue;  // not an answer, or an ICMP error
      for (std::uint64_t& value : values) value = be64toh(value);
      if (values[probe_index] == probe) return values;
    }
  }
  return std::nullopt;
}

}  // namespace

RateSearch search_rate(Datagrams& sending, Waiter& waiter, double max_bps, std::uint64_t span_ns) {
  const std::int64_t end = after(now_ns(), span_ns);
  const double bits = static_cast<double>(sending.packet_bytes()) * 8;
  const double train_ns = static_cast<double>(span_ns) * share_of_a_train;
  RateSearch search(std::max(min_train * bits * 1e9 / train_ns, max_bps / max_to_first), max_bps);
  for (std::uint64_t probe = 1; const auto rate = search.next(); ++probe) {
    const double interval_ns = bits * 1e9 / *rate;
    const double length_ns = search.is_found() ? confirming_trains * train_ns : train_ns;
    const double packets = std::max(min_train, std::round(length_ns / interval_ns));
    const std::int64_t start = now_ns();
    if (start + static_cast<std::int64_t>(packets * interval_ns) > end) break;
    for (double index = 0; index < packets; ++index) {
      waiter.sleep(start + static_cast<std::int64_t>(index * interval_ns));
      const auto number = static_cast<std::uint64_t>(index);
      sending.send(Kind::probe, probe << place_in_train_bits | number, waiter);
    }
    waiter.sleep(start + static_cast<std::int64_t>(packets * interval_ns));
    const auto sent_ns = static_cast<double>(now_ns() - start);
    const auto answer = request_answer(sending, waiter, probe, end);
    if (!answer) break;
    const auto arrived = static_cast<double>((*answer)[packets_index]);
    // The span from the first to the last arrival is one interval shorter than the train.
    const double span =
        arrived > 1 ? static_cast<double>((*answer)[span_index]) * arrived / (arrived - 1) : 0;
    search.add_result(arrived * bits * 1e9 / std::max(sent_ns, span), packets);
  }
  if (search.probes().empty()) {
    throw std::runtime_error(
        "the search for a rate had no answer from the server; check that the path "
        "is open in both directions, or give a longer --search");
  }
  return search;
}

void ProbedEnd::take(const ReceivedDatagram& datagram) {
  const bool is_question = datagram.kind == Kind::question;
  const std::uint64_t probe =
      is_question ? datagram.number : datagram.number >> place_in_train_bits;
  if (probe < probe_) return;  // a late datagram of an earlier probe
  if (probe > probe_) {
    received_ = Reception();
    probe_ = probe;
  }
  if (is_question) {
    Answer values{};
    values[probe_index] = htobe64(probe);
    values[packets_index] = htobe64(received_.received());
    values[span_index] =
        htobe64(received_.received() > 0 ? static_cast<std::uint64_t>(last_ns_ - first_ns_) : 0);
    // If the answer is lost, the client repeats its question.
    sendto(socket_, values.data(), sizeof values, 0,
           reinterpret_cast<const sockaddr*>(&datagram.sender), datagram.sender_length);
    return;
  }
  if (received_.received() == 0) first_ns_ = datagram.received_ns;
  last_ns_ = std::max(first_ns_, datagram.received_ns);
  const std::uint64_t index = datagram.number & ((1ULL << place_in_train_bits) - 1);
  received_.receive(index, datagram.sent_ns, datagram.received_ns);
}

}  // namespace nagi::applications
