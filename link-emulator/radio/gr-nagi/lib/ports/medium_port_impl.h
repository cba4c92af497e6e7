/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/medium_port.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "event.h"
#include "io/descriptor.hpp"

namespace gr {
namespace nagi {

class medium_port_impl : public medium_port {
 public:
  explicit medium_port_impl(int fd);
  ~medium_port_impl() override;

  bool start() override;
  bool stop() override;

  bool closed() const override { return closed_; }
  std::string error() const override;
  int closed_descriptor() const override { return closed_event_.descriptor(); }

 private:
  void read_transmissions();
  bool wait_readable() const;
  void take_in(std::span<const std::uint8_t> message);
  void answer(const pmt::pmt_t& message);
  void record_answer(std::uint32_t number);
  void end_of_transmissions(const std::string& error);
  void close(const std::string& error);

  ::nagi::io::Descriptor socket_;
  Event stopping_;
  Event closed_event_;
  std::thread reader_;
  std::atomic<bool> closed_ = false;

  mutable std::mutex mutex_;  // protects the members below
  std::deque<std::uint32_t> unanswered_;
  bool ended_ = false;  // true if no more transmissions arrive
  std::string error_;
};

}  // namespace nagi
}  // namespace gr
