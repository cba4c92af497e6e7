/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/snr_evm_probe.h>

#include <atomic>
#include <limits>
#include <span>

namespace gr {
namespace nagi {

class snr_evm_probe_impl : public snr_evm_probe {
 public:
  explicit snr_evm_probe_impl(const std::vector<gr_complex>& points);

  std::uint64_t packets() const override { return packets_; }
  double evm_percent() const override { return evm_percent_; }
  double snr_db() const override { return snr_db_; }

 private:
  void measure(const pmt::pmt_t& message);
  gr_complex nearest(gr_complex symbol) const;

  std::vector<gr_complex> points_;
  std::atomic<std::uint64_t> packets_ = 0;
  std::atomic<double> evm_percent_ = std::numeric_limits<double>::quiet_NaN();
  std::atomic<double> snr_db_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace nagi
}  // namespace gr
