/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/packet_port.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "event.h"
#include "packet_io.h"
#include "timed_thread.h"

namespace gr {
namespace nagi {

class packet_port_impl : public packet_port {
 public:
  explicit packet_port_impl(std::unique_ptr<PacketIo> io);
  ~packet_port_impl() override;

  bool start() override;
  bool stop() override;

  std::uint64_t received() const override { return io_->counters().received; }
  std::uint64_t sent() const override { return io_->counters().sent; }
  std::uint64_t send_failures() const override { return io_->counters().send_failures; }
  std::uint64_t discarded() const override;

 private:
  void read_frames();
  bool wait_readable() const;
  void take(const pmt::pmt_t& message);
  std::optional<std::int64_t> send_due(std::int64_t now_ns);

  std::unique_ptr<PacketIo> io_;
  Event stopping_;
  std::thread reader_;

  std::mutex mutex_;
  std::multimap<std::int64_t, pmt::pmt_t> waiting_;  // frames, by due time in ns

  TimedThread sender_;  // declared last, because it uses all members above
};

}  // namespace nagi
}  // namespace gr
