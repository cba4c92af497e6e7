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
 * Rate of a frame's code: information bits per coded bit. The code is that of IEEE 802.11-2020,
 * 17.3.5.6: constraint length K = 7, polynomials 133 and 171 (octal), rate 1/2, terminated by 6
 * zero bits. Puncturing yields the rates 2/3 and 3/4.
 */
enum class code_rate { none, rate_1_2, rate_2_3, rate_3_4 };

/*! Return the code rate of the name "none", "1/2", "2/3" or "3/4". Throws std::invalid_argument for
    other names. */
NAGI_API code_rate code_rate_from_name(const std::string& name);

/*! Return the code rates of several names, as code_rate_from_name() does. Throws
    std::invalid_argument if the list is empty or a name is unknown. */
NAGI_API std::vector<code_rate> code_rates_from_names(const std::vector<std::string>& names);

/*!
 * Return the length in bytes of the frame for a payload of \p payload_bytes. Header and CRC add 11
 * bytes. A code adds 6 tail bits, divides the number of bits by the code rate, and pads the result
 * to whole bytes.
 */
NAGI_API std::size_t framed_bytes(std::size_t payload_bytes, code_rate rate);

/*!
 * \brief The frame that packet_framer builds and packet_deframer unpacks.
 *
 * \details
 * A frame has these fields, in little-endian order:
 * \li u16 length of the payload in bytes
 * \li u32 sequence
 * \li u8 flags; bits 0 and 1 are the code rate: 0 none, 1 1/2, 2 2/3, 3 3/4
 * \li the payload
 * \li u32 CRC-32 (IEEE 802.3) of all previous fields
 *
 * With a code, the frame's bits, most significant first, are encoded, terminated, punctured, padded
 * with zeros to whole bytes, and interleaved. The interleaver writes the bits row by row into a
 * square and reads the square column by column. The number of rows R is the smallest integer of at
 * least sqrt(bits) that is divisible neither by 2 nor by 3. A burst of up to R bit errors therefore
 * falls on coded bits that are one row apart. The last column may be shorter than the others.
 *
 * With whitening, the result is added modulo 2 to the pseudo-random sequence of DVB-T (ETSI EN 300
 * 744, section 4.3.1: x^15 + x^14 + 1), which restarts in each frame. Whitening breaks up long runs
 * of equal bits and flattens the spectrum.
 *
 * Several threads must not use one object at the same time.
 */
class NAGI_API framing {
 public:
  /*! The fields of a frame that was received without errors. */
  struct content {
    std::uint32_t sequence;
    std::vector<std::uint8_t> payload;
  };

  static constexpr std::size_t longest_payload = 16'384;

  /*!
   * Create a framing.
   *
   * \param rate the code rate
   * \param whiten true for whitening
   * \param max_payload maximum length of a payload in bytes, 1 to longest_payload
   *
   * Throws std::invalid_argument if \p max_payload is out of range.
   */
  framing(code_rate rate, bool whiten, std::size_t max_payload);
  ~framing();

  /*! Return the frame with \p sequence and \p payload. Throws std::length_error if the payload is
      empty or longer than max_payload. */
  std::vector<std::uint8_t> frame(std::uint32_t sequence, std::span<const std::uint8_t> payload);

  /*! Return the content of \p framed, or std::nullopt if the frame is damaged. A code is decoded
      from hard decisions. */
  std::optional<content> deframe(std::span<const std::uint8_t> framed);

  /*!
   * Return the content of a frame given by soft decisions, or std::nullopt if the frame is damaged.
   * \p soft_bits has one log-likelihood ratio per bit of the frame, most significant bit first: a
   * value is positive for 1, and its magnitude grows with the certainty. The unit is arbitrary.
   * Throws std::logic_error without a code.
   */
  std::optional<content> deframe_soft(std::span<const float> soft_bits);

  /*! Return whether the framing has a code, which deframe_soft() requires. */
  bool is_coded() const { return code_ != nullptr; }

 private:
  class code;

  void whiten(std::span<std::uint8_t> bytes) const;
  std::optional<content> open(std::span<const std::uint8_t> plain) const;
  std::uint8_t flags() const { return static_cast<std::uint8_t>(rate_); }

  code_rate rate_;
  std::size_t max_payload_;
  std::vector<std::uint8_t> whitening_;  // empty without whitening
  std::unique_ptr<code> code_;           // null without a code
};

}  // namespace nagi
}  // namespace gr
