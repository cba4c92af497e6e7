// SPDX-License-Identifier: Apache-2.0
#include "daemon/transmissions.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "daemon/held_frame.hpp"

namespace nagi::daemon {

void Transmissions::take_outcomes(model::Direction& model) {
  if (!socket_) return;
  auto next =
      std::ranges::find_if(pending_, [](const Pending& pending) { return !pending.outcome; });
  while (const auto answer = socket_->receive()) {
    if (next == pending_.end() ||
        static_cast<std::uint32_t>(next->transmission.number) != answer->number) {
      throw std::system_error(EPROTO, std::generic_category(),
                              "the radio answers transmission " + std::to_string(answer->number) +
                                  ", but another answer was due");
    }
    take_outcome(*next, *answer);
    model.report(next->outcome != Outcome::received, next->snr);
    ++next;
  }
}

void Transmissions::take_outcome(Pending& pending, const RadioSocket::Answer& answer) {
  pending.outcome = answer.outcome;
  pending.snr = answer.snr;
  if (answer.outcome != Outcome::received) return;
  const std::span<std::byte> packet = ip_packet(pool_, pending.transmission.packet);
  if (std::ranges::equal(packet, answer.packet)) return;
  ++undetected_errors_;
  if (packet.size() == answer.packet.size()) {
    std::ranges::copy(answer.packet, packet.begin());
  } else {
    pending.outcome = Outcome::payload_error;
  }
}

void Transmissions::process(model::Direction& model) {
  if (!model.reports_transmissions()) return;
  for (const model::Transmission& transmission : model.started()) start(transmission);
  model.started().clear();
  for (const model::Transmission& transmission : model.resolved()) resolve(transmission);
  model.resolved().clear();
}

void Transmissions::start(const model::Transmission& transmission) {
  socket_->send(transmission, ip_packet(pool_, transmission.packet));
  pending_.push_back({transmission, std::nullopt});
}

void Transmissions::resolve(const model::Transmission& transmission) {
  Outcome outcome = transmission.lost ? Outcome::lost : Outcome::received;
  std::int16_t snr = no_snr;
  if (socket_) {
    outcome = *pending_.front().outcome;
    snr = pending_.front().snr;
    pending_.pop_front();
  }
  record(transmission, outcome, snr);
  ++resolved_[static_cast<std::size_t>(outcome)];
}

void Transmissions::record(const model::Transmission& transmission, Outcome outcome,
                           std::int16_t snr) {
  recorder_.record_transmission(direction_, transmission, held_frame(pool_, transmission.packet),
                                outcome, snr);
}

void Transmissions::finish() {
  for (const Pending& pending : pending_) {
    record(pending.transmission, pending.outcome.value_or(Outcome::unanswered), pending.snr);
  }
}

nlohmann::json Transmissions::account() const {
  auto by_outcome = resolved_;
  for (const Pending& pending : pending_) {
    ++by_outcome[static_cast<std::size_t>(pending.outcome.value_or(Outcome::unanswered))];
  }
  std::uint64_t sent = 0;
  for (const std::uint64_t ended : by_outcome) sent += ended;
  const auto count = [&by_outcome](Outcome outcome) {
    return by_outcome[static_cast<std::size_t>(outcome)];
  };
  return {{"sent", sent},
          {"received", count(Outcome::received)},
          {"not_detected", count(Outcome::not_detected)},
          {"header_errors", count(Outcome::header_error)},
          {"payload_errors", count(Outcome::payload_error)},
          {"receiver_busy", count(Outcome::receiver_busy)},
          {"not_sent", count(Outcome::not_sent)},
          {"not_received", count(Outcome::not_received)},
          {"lost", count(Outcome::lost)},
          {"undetected_errors", undetected_errors_}};
}

}  // namespace nagi::daemon
