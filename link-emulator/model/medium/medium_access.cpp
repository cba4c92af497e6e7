// SPDX-License-Identifier: Apache-2.0
//
// Channel access: the interface queue, backoff, and the choice of the next frame to send.
#include <algorithm>
#include <bit>
#include <utility>

#include "model/medium/medium.hpp"

namespace nagi::model {

/// Schedule the instant at which a station may send next.
void Medium::plan_access(StationIndex index) {
  Station& station = stations_[index];
  if (station.response || station.transmitting) return;
  cancel(index, Phase::begin);
  if (!station.sending && !station.access.has_backoff()) return;
  if (const auto at = station.access.next()) schedule(index, Phase::begin, std::max(*at, now_));
}

/// Take the next packet from the queue if the station is not sending one, and report the queue's
/// drops.
void Medium::serve_queue(StationIndex index) {
  Station& station = stations_[index];
  if (!station.sending) {
    if (const auto packet = station.queue->dequeue(now_, queue_events_)) {
      Sending next;
      next.packet = *packet;
      next.number = station.packets++;
      station.sending = next;
    }
  }
  station.counters.marked += std::exchange(queue_events_.marks, 0);
  for (const QueueEvents::Drop& drop : queue_events_.drops) {
    ++(drop.fate == Fate::aqm_drop ? station.counters.aqm_drops : station.counters.queue_overflows);
    output_->departures.push_back({index, {drop.packet, drop.fate, now_}});
  }
  queue_events_.drops.clear();
}

/// Begin a backoff of a random number of slots from 0 to the contention window.
void Medium::back_off(StationIndex index) {
  Station& station = stations_[index];
  const std::uint64_t draw = Stream(seed_, id_, index, Purpose::backoff).draw(station.draws++);
  const auto bits = static_cast<unsigned>(std::bit_width(station.cw));
  station.access.back_off(bits == 0 ? 0 : draw >> (64U - bits), now_);
}

/// Apply the next move of a station's trace and schedule the one after it.
void Medium::move(StationIndex index) {
  Station& station = stations_[index];
  const std::vector<Move>& trace = config_.stations[index].trace;
  reach_.move(index, trace[station.next_move].to);
  if (++station.next_move < trace.size()) {
    schedule(index, Phase::move, Instant{trace[station.next_move].at});
  }
}

bool Medium::uses_rts(const Packet& packet) const {
  return packet.next_hop != everybody && config_.rts_threshold &&
         packet.size + data_overhead > *config_.rts_threshold;
}

/// Return the DATA frame of the packet that a station is sending. Its `end` is its duration.
AirFrame Medium::data_frame(StationIndex index) const {
  const Sending& sending = *stations_[index].sending;
  const bool is_broadcast = sending.packet.next_hop == everybody;
  AirFrame frame;
  frame.kind = FrameKind::data;
  frame.from = index;
  frame.to = sending.packet.next_hop.value_or(nobody);
  frame.end =
      Instant{is_broadcast ? phy_.broadcast(sending.packet.size) : phy_.data(sending.packet.size)};
  frame.reserves = is_broadcast ? Duration{} : phy_.sifs() + phy_.ack();
  frame.packet = sending.number;
  frame.attempt = sending.attempt;
  frame.data = sending.packet;
  return frame;
}

/// Return the RTS or DATA frame with which a station begins to send its packet.
AirFrame Medium::first_frame_of_exchange(StationIndex index) const {
  AirFrame frame = data_frame(index);
  if (!uses_rts(frame.data)) return frame;
  frame.kind = FrameKind::rts;
  frame.end = Instant{phy_.rts()};
  frame.reserves = 3 * phy_.sifs() + phy_.cts() + phy_.data(frame.data.size) + phy_.ack();
  return frame;
}

/// Return the frame that a station sends now, or nothing if only its backoff ends. The `end` of
/// frames that are not on the air yet is their duration.
std::optional<AirFrame> Medium::next_frame(StationIndex index) {
  Station& station = stations_[index];
  if (station.response) {
    station.access.end_exchange(now_);
    return std::exchange(station.response, std::nullopt);
  }
  station.access.end_backoff();
  if (!station.sending) return std::nullopt;
  return first_frame_of_exchange(index);
}

}  // namespace nagi::model
