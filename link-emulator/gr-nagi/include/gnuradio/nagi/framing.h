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

/*! Forward error correction of a frame. */
enum class fec_type {
  none,
  convolutional /*!< K = 7, rate 1/2, polynomials 171 and 133 (octal), terminated by 6 zero bits */
};

/*! By its name, "none" or "convolutional"; throws std::invalid_argument for others. */
NAGI_API fec_type fec_from_name(const std::string& name);

/*!
 * How many bytes go on the air for a payload of \p payload_bytes: 11 of header and CRC, and for
 * convolutional FEC twice that, with 2 for the tail and the rest of the last byte.
 */
NAGI_API std::size_t framed_bytes(std::size_t payload_bytes, fec_type fec);

/*!
 * \brief The frame that packet_framer builds and packet_deframer takes apart.
 *
 * \details
 * Little-endian: u16 payload length, u32 sequence, u8 flags (bit 0: convolutional FEC), the
 * payload, u32 CRC-32 (IEEE 802.3) of all before. With FEC, its bits, most significant first, are
 * encoded, terminated, padded with zeros to whole bytes, and interleaved: written row by row into a
 * square (of ceil(sqrt(bits)) columns), read column by column, so that a burst of errors as long as
 * a column hits code bits a row apart. With whitening, all is added modulo 2 to the pseudo-random
 * sequence of DVB-T (ETSI EN 300 744, section 4.3.1: x^15 + x^14 + 1, begun anew in each frame):
 * long runs become harmless and the spectrum flat.
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
   * \param fec forward error correction
   * \param whiten whether to whiten
   * \param max_payload the longest payload in bytes, 1 to longest_payload; beyond, throws
   *        std::invalid_argument
   */
  framing(fec_type fec, bool whiten, std::size_t max_payload);
  ~framing();

  /*! The frame. Throws std::length_error if the payload is empty or longer than max_payload. */
  std::vector<std::uint8_t> frame(std::uint32_t sequence, std::span<const std::uint8_t> payload);

  /*! What it holds; nothing if it came damaged. */
  std::optional<content> deframe(std::span<const std::uint8_t> framed);

 private:
  class code;

  void whiten(std::span<std::uint8_t> bytes) const;
  std::uint8_t flags() const { return fec_ == fec_type::convolutional ? 1 : 0; }

  fec_type fec_;
  std::size_t max_payload_;
  std::vector<std::uint8_t> whitening_;  // empty: none
  std::unique_ptr<code> code_;           // none without FEC
};

}  // namespace nagi
}  // namespace gr
