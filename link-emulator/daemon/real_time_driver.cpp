// SPDX-License-Identifier: Apache-2.0
#include "daemon/real_time_driver.hpp"

#include <algorithm>
#include <optional>

namespace nagi::daemon {

runtime::Served RealTimeDriver::serve(const std::vector<int>& readable) {
  // Read the clock before the ports: all frames that arrived earlier are then in the ports, and the
  // model may advance to this instant.
  const Instant now = time_.now();
  runtime::Served served;
  served.now_ns = time_.monotonic_ns(now);
  known_.clear();
  for (LinkDirection* direction : directions_) {
    const std::uint64_t arrived = direction->arrived();
    const io::Port& in = direction->in();
    const bool may_have_frames = in.is_cheap_to_read() || direction->socket() != nullptr ||
                                 std::ranges::find(readable, in.descriptor()) != readable.end();
    known_.push_back(may_have_frames ? direction->read_arrivals(now) : now);
    served.frames += direction->arrived() - arrived;
  }
  // Both directions of an FPGA advance together, when the arrivals of both are known.
  for (std::size_t i = 0; i < directions_.size(); ++i) directions_[i]->advance(known_[i]);
  for (LinkDirection* direction : directions_) {
    direction->process_departures();
    served.frames += direction->due().size();
  }
  for (SharedMedium* medium : media_) {
    const std::uint64_t arrived = medium->arrived();
    medium->advance(now, readable);
    served.frames += medium->arrived() - arrived;
  }
  for (LinkDirection* direction : directions_) hand_over(*direction);
  for (SharedMedium* medium : media_) {
    served.frames += medium->hand_over();
    medium->record_results();
  }

  std::optional<Instant> next;
  for (const LinkDirection* direction : directions_) {
    const auto delivery = direction->model().next_delivery();
    served.quiet = served.quiet && !delivery;
    if (direction->awaits_outcome()) continue;  // the radio's socket wakes this process
    if (delivery && (!next || *delivery < *next)) next = delivery;
  }
  for (const SharedMedium* medium : media_) {
    const auto delivery = medium->model().next_delivery();
    served.quiet = served.quiet && !delivery;
    if (delivery && (!next || *delivery < *next)) next = delivery;
  }
  if (next) served.next_delivery_ns = time_.monotonic_ns(*next);
  return served;
}

void RealTimeDriver::hand_over(LinkDirection& direction) {
  std::vector<model::Departure>& due = direction.due();
  if (due.empty()) return;
  frames_.clear();
  leaving_.clear();
  // After a long delay the notes are no longer in the processor's caches.
  for (const model::Departure& departure : due) {
    __builtin_prefetch(&held_frame(pool_, departure.packet));
  }
  for (const model::Departure& departure : due) {
    leaving_.push_back(direction.prepare_frame(departure));
    frames_.push_back(leaving_.back().frame);
  }
  // A frame counts as handed over when the kernel has processed all earlier frames. Later
  // processing by the kernel, including reception at the far end, does not count.
  const Instant started = time_.now();
  direction.out().send(frames_);
  const double ns_per_frame =
      static_cast<double>((time_.now() - started).count()) / static_cast<double>(frames_.size());
  double waited = 0;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto late = (started - due[i].at).count() + static_cast<std::int64_t>(waited);
    waited += ns_per_frame;
    direction.note_handed_over(leaving_[i], due[i], late);
  }
  due.clear();
}

}  // namespace nagi::daemon
