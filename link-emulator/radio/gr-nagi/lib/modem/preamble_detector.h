/* SPDX-License-Identifier: Apache-2.0 */
//
// Detector of a known preamble in the samples of one burst. The detector estimates the start of the
// preamble and the frequency offset of its carrier.
//
// Detection and the coarse frequency follow T. M. Schmidl and D. C. Cox, "Robust frequency and
// timing synchronization for OFDM", IEEE Trans. Commun. 45(12), 1997: the preamble begins with a
// part that repeats, up to its sign, after `repeat_lag` samples. The correlation also covers the
// cyclic prefix, so its metric has one peak and no plateau. The timing and the fine frequency come
// from a correlation with the whole preamble around that peak.
//
// The blocks ofdm_sync_sc_cfb and corr_est_cc of gr-digital perform similar tasks on continuous
// streams. Their rounding, and the peaks of corr_est_cc, depend on how the stream is divided into
// chunks. The results of this detector depend on the burst alone: it computes in double precision
// and in a fixed order.
#pragma once

#include <gnuradio/gr_complex.h>

#include <complex>
#include <optional>
#include <span>
#include <vector>

namespace gr::nagi {

struct PreambleShape {
  std::vector<gr_complex> samples;  // as sent
  std::size_t repeat_begin;         // start of the part that repeats
  std::size_t repeat_lag;           // samples from the part to its repetition
  std::size_t repeat_length;        // number of products in the correlation
  // Samples over which a multipath channel may spread the preamble. If `spread` is not 0, the
  // second half of the preamble is a symbol with a cyclic prefix of `spread` samples, and the
  // timing is the start of the window of `spread` samples that holds the most energy of the
  // channel. If `spread` is 0, the timing is that of the strongest path.
  std::size_t spread;
  double threshold;  // threshold of the metric, 0 to 1
};

struct Detection {
  std::ptrdiff_t begin;     // start of the preamble; with `spread`, at or before its first path
  std::ptrdiff_t peak;      // start of the preamble's strongest path
  double fraction;          // samples from `peak` to the exact start, -0.5 to 0.5
  double frequency;         // frequency offset, rad per sample
  double frequency_weight;  // energy x time^2 of the estimate `frequency`, to combine estimates
};

class PreambleDetector {
 public:
  using Complex = std::complex<double>;

  /// Prepare the detection of a preamble. Throws std::invalid_argument if `shape` is not valid.
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
  double sign_;                   // sign of the repetition, 1 or -1
  std::vector<Complex> turns_;    // roots of unity for the discrete Fourier transform
  std::vector<Complex> inverse_;  // 1 / carrier of the preamble's last symbol; 0 if unused
  std::vector<Complex> kernel_;   // impulse response of a single path, limited to the used carriers
};

}  // namespace gr::nagi
