/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/loss_probe.h>

#include <array>
#include <atomic>

namespace gr {
namespace nagi {

class loss_probe_impl : public loss_probe {
 public:
  loss_probe_impl();

  std::uint64_t received() const override { return counts_[0]; }
  std::uint64_t not_detected() const override { return counts_[1]; }
  std::uint64_t header_errors() const override { return counts_[2]; }
  std::uint64_t payload_errors() const override { return counts_[3]; }

 private:
  void count(const pmt::pmt_t& message);
  void report();

  std::array<std::atomic<std::uint64_t>, 13> counts_{};  // indexed by outcome
};

}  // namespace nagi
}  // namespace gr
