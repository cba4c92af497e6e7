// SPDX-License-Identifier: Apache-2.0
//
// The transmissions of one direction of a link that is a radio or has ARQ. A transmission of a
// radio is sent to its socket when the transmission starts. The radio's process returns the
// outcome, which the model needs. Each transmission is recorded and counted when its outcome is
// resolved.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/radio_socket.hpp"
#include "daemon/recorder.hpp"
#include "io/frame_pool.hpp"
#include "model/direction.hpp"

namespace nagi::daemon {

/// Transmissions from their start until their outcome is resolved.
class Transmissions {
 public:
  /// Create the list for direction number `direction`. `socket` leads to a radio, or is null.
  Transmissions(std::uint8_t direction, std::unique_ptr<RadioSocket> socket, io::FramePool& pool,
                Recorder& recorder)
      : direction_(direction), socket_(std::move(socket)), pool_(pool), recorder_(recorder) {}

  /// Return the socket of a radio, or null.
  [[nodiscard]] const RadioSocket* socket() const { return socket_.get(); }

  /// Report the radio's outcomes to the model, and replace each packet by the packet that the radio
  /// received. Throws std::system_error if the radio's process has ended or violates the protocol.
  void take_outcomes(model::Direction& model);
  /// Send transmissions that have started to the radio, and record those that are resolved.
  void process(model::Direction& model);
  /// Record the transmissions that are not resolved at the end.
  void finish();
  /// Return the numbers of transmissions by outcome, in the format of links.json.
  [[nodiscard]] nlohmann::json account() const;

 private:
  /// A transmission that the model has not resolved yet.
  struct Pending {
    model::Transmission transmission;
    std::optional<Outcome> outcome;  // reported by the radio
    std::int16_t snr = no_snr;
  };

  void take_outcome(Pending& pending, const RadioSocket::Answer& answer);
  void start(const model::Transmission& transmission);
  void resolve(const model::Transmission& transmission);
  void record(const model::Transmission& transmission, Outcome outcome, std::int16_t snr);

  std::uint8_t direction_;
  std::unique_ptr<RadioSocket> socket_;
  io::FramePool& pool_;
  Recorder& recorder_;
  std::deque<Pending> pending_;
  std::array<std::uint64_t, outcomes> resolved_{};  // by outcome
  std::uint64_t undetected_errors_ = 0;  // receptions with changed bytes and a correct checksum
};

}  // namespace nagi::daemon
