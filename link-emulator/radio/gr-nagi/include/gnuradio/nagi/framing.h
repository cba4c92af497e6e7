/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gnuradio/nagi/api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gr {
namespace nagi {

/*!
 * Rate of a frame's code, bits in over bits out. The code is that of IEEE 802.11-2020, 17.3.5.6:
 * K = 7, polynomials 133 and 171 (octal), rate 1/2, terminated by 6 zero bits; for 2/3 and 3/4 it
 * is punctured.
 */
enum class code_rate { none, rate_1_2, rate_2_3, rate_3_4 };

/*! By its name, "none", "1/2", "2/3" or "3/4"; throws std::invalid_argument for others. */
NAGI_API code_rate code_rate_from_name(const std::string& name);

/*! The same of several, at least one. */
NAGI_API std::vector<code_rate> code_rates_from_names(const std::vector<std::string>& names);

/*!
 * How many bytes go on the air for a payload of \p payload_bytes: 11 of header and CRC, and with a
 * code the bits of that with 6 of the tail, over the code rate, in whole bytes.
 */
NAGI_API std::size_t framed_bytes(std::size_t payload_bytes, code_rate rate);

/*!
 * \brief The frame that packet_framer builds and packet_deframer takes apart.
 *
 * \details
 * Little-endian: u16 payload length, u32 sequence, u8 flags (bits 0 and 1: code rate; 0 none, 1
 * 1/2, 2 2/3, 3 3/4), the payload, u32 CRC-32 (IEEE 802.3) of all before. With a code, its bits,
 * most significant first, are encoded, terminated, punctured, padded with zeros to whole bytes, and
 * interleaved: written row by row into a square, whose number of rows R is the next from
 * sqrt(bits) without a factor of 2 or 3, and read column by column, so that a burst of errors of R
 * bits hits code bits a row apart. The last column may be shorter. With whitening, all is added
 * modulo 2 to the pseudo-random sequence of DVB-T (ETSI EN 300 744, section 4.3.1: x^15 + x^14 + 1,
 * begun anew in each frame): long runs become harmless and the spectrum flat.
 *
 * One framing must not be used by several threads at once.
 */
class NAGI_API framing {
 public:
  /*! What a frame held. */
  struct content {
    std::uint32_t sequence;
    std::vector<std::uint8_t> payload;
  };

  static constexpr std::size_t longest_payload = 16'384;

  /*!
   * \param rate the code's rate
   * \param whiten whether to whiten
   * \param max_payload the longest payload in bytes, 1 to longest_payload; beyond, throws
   *        std::invalid_argument
   */
  framing(code_rate rate, bool whiten, std::size_t max_payload);
  ~framing();

  /*! The frame. Throws std::length_error if the payload is empty or longer than max_payload. */
  std::vector<std::uint8_t> frame(std::uint32_t sequence, std::span<const std::uint8_t> payload);

  /*! What it holds; nothing if it came damaged. Codes decode hard decisions. */
  std::optional<content> deframe(std::span<const std::uint8_t> framed);

  /*!
   * The same from soft decisions: for each bit of the frame, most significant first, a value that
   * is positive for 1 and larger the more certain it is (a log-likelihood ratio, in any unit).
   * Throws std::logic_error without a code.
   */
  std::optional<content> deframe_soft(std::span<const float> soft_bits);

  /*! Whether there is a code, so that soft decisions serve. */
  bool is_coded() const { return code_ != nullptr; }

 private:
  class code;

  void whiten(std::span<std::uint8_t> bytes) const;
  std::optional<content> open(std::span<const std::uint8_t> plain) const;
  std::uint8_t flags() const { return static_cast<std::uint8_t>(rate_); }

  code_rate rate_;
  std::size_t max_payload_;
  std::vector<std::uint8_t> whitening_;  // empty: none
  std::unique_ptr<code> code_;           // none without a code
};

}  // namespace nagi
}  // namespace gr
