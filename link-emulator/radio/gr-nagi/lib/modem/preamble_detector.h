/* SPDX-License-Identifier: Apache-2.0 */
//
// Finds a known preamble in the samples of one burst, and estimates when it begins and how far its
// carrier is off.
//
// Detection and the coarse frequency follow T. M. Schmidl and D. C. Cox, "Robust frequency and
// timing synchronization for OFDM", IEEE Trans. Commun. 45(12), 1997: the preamble begins with a
// part that repeats, up to its sign, after `lag` samples. The correlation runs over the prefix as
// well, so its metric has one peak and no plateau. Timing and the fine frequency come from
// correlating with the whole preamble around that peak.
//
// gr-digital's ofdm_sync_sc_cfb and corr_est_cc do such things on endless streams. Their rounding,
// and corr_est_cc's peaks, depend on how the stream is cut into chunks; here everything is a
// function of the burst alone, in double precision and a fixed order.
#pragma once

#include <gnuradio/gr_complex.h>

#include <complex>
#include <optional>
#include <span>
#include <vector>

namespace gr::nagi {

struct PreambleShape {
  std::vector<gr_complex> samples;  // as sent
  std::size_t repeat_begin;         // where its repeating part begins
  std::size_t repeat_lag;           // samples from one to the other
  std::size_t repeat_length;        // products in the correlation
  // Samples over which a multipath channel may spread it. The preamble's second half is then a
  // symbol with a cyclic prefix so long, and timing takes the window of so many samples that holds
  // most of the channel's energy. 0: takes the strongest path.
  std::size_t spread;
  double threshold;  // of the metric, 0 to 1
};

struct Detection {
  std::ptrdiff_t begin;     // where the preamble begins; with `spread`, at or before its first path
  std::ptrdiff_t peak;      // where its strongest path begins
  double fraction;          // of a sample that it begins later than `peak`, -0.5 to 0.5
  double frequency;         // rad per sample
  double frequency_weight;  // energy x time^2 behind that estimate, to combine it with others
};

class PreambleDetector {
 public:
  using Complex = std::complex<double>;

  /// Throws std::invalid_argument if the preamble does not hold what `shape` says of it.
  explicit PreambleDetector(PreambleShape shape);

  std::optional<Detection> detect(std::span<const gr_complex> burst) const;

 private:
  struct Coarse {
    std::ptrdiff_t begin;
    double frequency;
  };
  std::optional<Coarse> coarse(std::span<const gr_complex> burst) const;
  void prepare_transform();
  std::ptrdiff_t first_path(std::span<const gr_complex> burst, const Detection& found) const;
  std::vector<double> path_energies(std::vector<Complex> response) const;
  std::vector<Complex> transform(const std::vector<Complex>& values, int sign) const;
  Detection fine(std::span<const gr_complex> burst, const Coarse& first) const;

  PreambleShape shape_;
  double sign_;                   // of the repetition
  std::vector<Complex> turns_;    // of the discrete Fourier transform
  std::vector<Complex> inverse_;  // of the carriers in the preamble's last symbol; 0: not used
  std::vector<Complex> kernel_;   // impulse response of a single path as these carriers show it
};

}  // namespace gr::nagi
