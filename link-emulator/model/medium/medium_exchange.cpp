// SPDX-License-Identifier: Apache-2.0
//
// Frame exchanges at a station: RTS, CTS, DATA and ACK, NAV, timeouts and retries.
#include <algorithm>
#include <utility>

#include "model/medium/medium.hpp"

namespace nagi::model {

/// Process a frame whose reception at a station ends: determine its outcome, and respond, deliver,
/// or set the NAV.
void Medium::finish_reception(StationIndex index, const OnAir& ended) {
  Station& station = stations_[index];
  const AirFrame frame = ended.frame;
  bool correct = !station.reception->error;
  const FrameSlot slot = station.reception->frame;
  station.reception.reset();
  const bool is_addressed = frame.to == index || frame.to == everybody;
  if (correct && is_addressed && is_lost(index, frame)) {
    correct = false;
    record_outcome(slot, index, FrameOutcome::channel_error);
  }
  // If a station receives another frame instead of the awaited response, it stops waiting.
  if (station.awaited != Awaited::nothing && frame.start >= station.request_end) {
    const bool is_response =
        correct && frame.to == index &&
        frame.kind == (station.awaited == Awaited::cts ? FrameKind::cts : FrameKind::ack);
    if (!is_response) retry_or_give_up(index);
  }
  if (!correct) {
    station.access.note_error();
    return;
  }
  record_outcome(slot, index, FrameOutcome::received);
  station.access.note_correct();
  if (frame.to == everybody) {
    deliver(index, frame);
  } else if (frame.to == index) {
    handle_addressed_frame(index, frame);
    if (frame.kind == FrameKind::rts && !station.response) {
      record_outcome(slot, index, FrameOutcome::not_answered);
    }
  } else {
    update_nav(index, frame);
  }
}

/// Return whether the loss model of a sender and a receiver loses a frame.
bool Medium::is_lost(StationIndex index, const AirFrame& frame) {
  if (std::holds_alternative<NoLoss>(config_.loss)) return false;
  const std::uint64_t pair = frame.from * stations_.size() + index;
  PairLoss& loss = losses_[pair];
  if (!loss.model) {
    const auto number = static_cast<std::uint32_t>(pair);
    loss.model = make_loss(
        config_.loss, {config_.phy.data_rate, Bytes{}, Stream(seed_, id_, number, Purpose::loss),
                       Stream(seed_, id_, number, Purpose::loss_state)});
  }
  Transmission transmission;
  transmission.packet.size = frame.kind == FrameKind::data  ? frame.data.size + data_overhead
                             : frame.kind == FrameKind::rts ? rts_bytes
                                                            : ack_bytes;
  transmission.start = frame.start;
  transmission.end = frame.end;
  return loss.model->loses(loss.index++, transmission);
}

/// Process a frame that is addressed to this station, and prepare the response to it.
void Medium::handle_addressed_frame(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  AirFrame next;
  switch (frame.kind) {
    case FrameKind::rts:
      if (station.awaited != Awaited::nothing || station.access.reserved_until() > now_) return;
      next = frame;
      next.kind = FrameKind::cts;
      next.end = Instant{phy_.cts()};
      next.reserves = frame.reserves - phy_.sifs() - phy_.cts();
      break;
    case FrameKind::data:
      deliver(index, frame);
      next = frame;
      next.kind = FrameKind::ack;
      next.end = Instant{phy_.ack()};
      next.reserves = {};
      break;
    case FrameKind::cts:
      if (station.awaited != Awaited::cts) return;
      station.awaited = Awaited::nothing;
      station.access.end_exchange(now_);
      cancel(index, Phase::timeout);
      station.sending->short_retries = 0;
      next = data_frame(index);
      break;
    case FrameKind::ack:
      if (station.awaited == Awaited::ack) finish_packet(index, Fate::delivered);
      return;
  }
  if (next.kind != FrameKind::data) {
    next.from = index;
    next.to = frame.from;
    next.outcome = FrameOutcome::out_of_reach;
  }
  station.response = next;
  station.access.begin_exchange(now_);
  schedule(index, Phase::begin, now_ + phy_.sifs());
}

/// Extend the NAV by the reservation in a frame that is addressed to another station.
void Medium::update_nav(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  const Instant until = now_ + frame.reserves;
  if (until <= station.access.reserved_until()) return;
  station.access.reserve(until);
  station.nav_rts_end = Instant::min();
  if (frame.kind != FrameKind::rts || !config_.resets_nav) return;
  station.nav_rts_end = now_;
  schedule(index, Phase::reservation_check,
           now_ + 2 * phy_.sifs() + phy_.cts() + phy_.preamble() + 2 * phy_.slot());
}

/// Reset the NAV if no frame has followed the RTS that set it (10.3.2.4).
void Medium::check_reservation(StationIndex index) {
  Station& station = stations_[index];
  const bool has_followed = station.reception_began >= station.nav_rts_end &&
                            station.reception_began + phy_.preamble() <= now_;
  if (station.nav_rts_end == Instant::min() || has_followed) return;
  station.access.end_reservation(now_);
  mark_for_planning(index);
}

/// Deliver the packet of a frame, unless it is a duplicate.
void Medium::deliver(StationIndex index, const AirFrame& frame) {
  Station& station = stations_[index];
  Station& sender = stations_[frame.from];
  // A packet is sent again if its ACK was lost. Only the first reception counts.
  const auto [last, is_first] = station.last_received.try_emplace(frame.from, frame.packet);
  if (!is_first && std::exchange(last->second, frame.packet) == frame.packet) return;
  if (!sender.sending->delivered) sender.sending->delivered = now_;
  output_->deliveries.push_back({frame.from, index, frame.data, now_});
}

/// Wait for a CTS or an ACK, and schedule the timeout.
void Medium::await_response(StationIndex index, Awaited awaited) {
  Station& station = stations_[index];
  station.awaited = awaited;
  station.request_end = now_;
  station.access.begin_exchange(now_);
  schedule(index, Phase::timeout, now_ + phy_.response_timeout());
}

/// Continue the exchange after a station has sent a frame.
void Medium::finish_sending(StationIndex index, const AirFrame& frame) {
  if (frame.kind == FrameKind::rts) {
    await_response(index, Awaited::cts);
  } else if (frame.kind == FrameKind::data && frame.to == everybody) {
    stations_[index].sending->delivered = now_;
    stations_[index].access.begin_exchange(now_);
    finish_packet(index, Fate::delivered);
  } else if (frame.kind == FrameKind::data) {
    await_response(index, Awaited::ack);
  }
}

/// Retry if no response has begun by now. If a frame has begun, finish_reception() checks whether
/// it is the response.
void Medium::time_out(StationIndex index) {
  const Station& station = stations_[index];
  if (station.reception && station.reception_began + phy_.preamble() <= now_ &&
      station.reception_began >= station.request_end) {
    return;
  }
  retry_or_give_up(index);
}

/// Retry the exchange after a missing response, or give the packet up at the retry limit.
void Medium::retry_or_give_up(StationIndex index) {
  Station& station = stations_[index];
  Sending& sending = *station.sending;
  const bool is_long = station.awaited == Awaited::ack && uses_rts(sending.packet);
  const bool is_exhausted = is_long ? ++sending.long_retries >= config_.long_retry_limit
                                    : ++sending.short_retries >= config_.short_retry_limit;
  if (is_exhausted) {
    finish_packet(index, sending.delivered ? Fate::delivered : Fate::retry_limit);
    return;
  }
  station.awaited = Awaited::nothing;
  cancel(index, Phase::timeout);
  station.access.end_exchange(now_);
  ++sending.attempt;
  station.cw = std::min(2 * station.cw + 1, config_.cw_max);
  back_off(index);
  mark_for_planning(index);
}

/// End the exchange, report the departure of the packet, and back off before the next one.
void Medium::finish_packet(StationIndex index, Fate fate) {
  Station& station = stations_[index];
  const Sending finished = *std::exchange(station.sending, std::nullopt);
  station.awaited = Awaited::nothing;
  cancel(index, Phase::timeout);
  station.access.end_exchange(now_);
  if (fate == Fate::delivered) {
    ++station.counters.delivered;
    station.counters.delivered_bytes += finished.packet.size;
  } else {
    ++station.counters.given_up;
  }
  output_->departures.push_back(
      {index, {finished.packet, fate, finished.delivered.value_or(now_)}});
  station.cw = config_.cw_min;
  back_off(index);
  serve_queue(index);
  mark_for_planning(index);
}

}  // namespace nagi::model
