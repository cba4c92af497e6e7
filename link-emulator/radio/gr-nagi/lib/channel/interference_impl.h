/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/interference.h>

#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <span>

#include "pdu.h"
#include "timed_thread.h"

namespace gr {
namespace nagi {

class interference_impl : public interference {
 public:
  explicit interference_impl(const interference_config& config);

  bool start() override;
  bool stop() override;

 private:
  struct Burst {
    Pdu pdu;
    std::uint64_t number;
    std::int64_t begin_ns;
    std::int64_t end_ns;
  };

  Burst read(const pmt::pmt_t& message);
  void hold(const pmt::pmt_t& message);
  void receive_interfering(std::size_t interferer, const pmt::pmt_t& message);
  std::optional<std::int64_t> advance(std::int64_t now_ns);
  void publish(const Burst& burst);
  void add(std::size_t interferer, const Burst& other, const Burst& burst,
           std::span<gr_complex> samples) const;
  void discard_old(std::int64_t event_now_ns);

  const interference_config config_;
  std::vector<float> amplitudes_;

  // The mutex is locked while PDUs are published as well, so that PDUs leave in order.
  std::mutex mutex_;
  std::deque<Burst> held_;
  std::vector<std::deque<Burst>> interfering_;  // by interferer, in the order of begin_ns
  // CLOCK_MONOTONIC at event time 0: an upper bound, which read() lowers.
  std::int64_t epoch_ns_ = std::numeric_limits<std::int64_t>::max();
  // Latest end of a burst that was published.
  std::int64_t left_until_ns_ = std::numeric_limits<std::int64_t>::min();

  TimedThread thread_;  // declared last, because the thread uses the members above
};

}  // namespace nagi
}  // namespace gr
