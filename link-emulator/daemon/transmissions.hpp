// SPDX-License-Identifier: Apache-2.0
//
// The transmissions of one direction of a link that is a radio, or repeats what was lost. On a
// radio each goes to the socket when it starts, and the model needs the outcome that comes back
// from there. Each is recorded and counted when its outcome is resolved.
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

class Transmissions {
 public:
  /// `direction`: its number. `socket`: of a radio; else null.
  Transmissions(std::uint8_t direction, std::unique_ptr<RadioSocket> socket, io::FramePool& pool,
                Recorder& recorder)
      : direction_(direction), socket_(std::move(socket)), pool_(pool), recorder_(recorder) {}

  /// The socket of a radio; else null.
  [[nodiscard]] const RadioSocket* socket() const { return socket_.get(); }

  /// Tells the model the outcomes that the radio has reported. What the far end gets is what the
  /// radio made of a packet. Throws std::system_error if the radio is gone or does not keep to the
  /// protocol.
  void take_outcomes(model::Direction& model);
  /// Hands the radio the transmissions that have started, and records those that are resolved.
  void settle(model::Direction& model);
  /// It is over: records what is not resolved.
  void finish();
  /// As links.json has it.
  [[nodiscard]] nlohmann::json account() const;

 private:
  /// On the air, until the model has resolved it.
  struct UnderWay {
    model::Transmission transmission;
    std::optional<Outcome> outcome;  // as reported
    std::int16_t snr = no_snr;
  };

  void take_outcome(UnderWay& under_way, const RadioSocket::Answer& answer);
  void start(const model::Transmission& transmission);
  void resolve(const model::Transmission& transmission);
  void record(const model::Transmission& transmission, Outcome outcome, std::int16_t snr);

  std::uint8_t direction_;
  std::unique_ptr<RadioSocket> socket_;
  io::FramePool& pool_;
  Recorder& recorder_;
  std::deque<UnderWay> under_way_;
  std::array<std::uint64_t, outcomes> resolved_{};  // by outcome
  std::uint64_t undetected_errors_ = 0;             // the radio took something else for the packet
};

}  // namespace nagi::daemon
