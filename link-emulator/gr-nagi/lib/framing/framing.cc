/* SPDX-License-Identifier: Apache-2.0 */
#include <gnuradio/fec/cc_decoder.h>
#include <gnuradio/fec/cc_encoder.h>
#include <gnuradio/nagi/framing.h>

#include <boost/crc.hpp>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <volk/volk_alloc.hh>

namespace gr {
namespace nagi {

namespace {

constexpr std::size_t header_bytes = 7;
constexpr std::size_t crc_bytes = 4;
constexpr std::size_t tail_bits = 6;

std::uint32_t crc_of(std::span<const std::uint8_t> bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

template <class Number>
void put(std::uint8_t* at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::uint8_t>(value >> 8 * i);
}

template <class Number>
Number get(const std::uint8_t* at) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Number>(value | Number{at[i]} << 8 * i);
  }
  return value;
}

/// The sequence of DVB-T's energy dispersal.
std::vector<std::uint8_t> whitening_sequence(std::size_t bytes) {
  std::vector<std::uint8_t> sequence(bytes);
  unsigned state = 0b000000010101001;  // the register "100101010000000", its first cell lowest
  for (std::uint8_t& byte : sequence) {
    for (int bit = 0; bit < 8; ++bit) {
      const unsigned out = (state >> 13 ^ state >> 14) & 1U;
      state = (state << 1 | out) & 0x7fffU;
      byte = static_cast<std::uint8_t>(byte << 1 | out);
    }
  }
  return sequence;
}

}  // namespace

fec_type fec_from_name(const std::string& name) {
  if (name == "none") return fec_type::none;
  if (name == "convolutional") return fec_type::convolutional;
  throw std::invalid_argument("fec: \"" + name + R"(" is not one of "none", "convolutional")");
}

std::size_t framed_bytes(std::size_t payload_bytes, fec_type fec) {
  const std::size_t plain = header_bytes + payload_bytes + crc_bytes;
  return fec == fec_type::none ? plain : (2 * (8 * plain + tail_bits) + 7) / 8;
}

/// The convolutional code with its interleaver.
class framing::code {
 public:
  explicit code(std::size_t max_bytes)
      : encoder_(fec::code::cc_encoder::make(static_cast<int>(8 * max_bytes), constraint, 2,
                                             polynomials(), 0, CC_TERMINATED)),
        decoder_(fec::code::cc_decoder::make(static_cast<int>(8 * max_bytes), constraint, 2,
                                             polynomials(), 0, 0, CC_TERMINATED)),
        bits_(8 * max_bytes + 64),
        coded_(16 * (max_bytes + 2) + 64) {}

  std::vector<std::uint8_t> encode(std::span<const std::uint8_t> plain) {
    const std::size_t bits = 8 * plain.size();
    for (std::size_t i = 0; i < bits; ++i) bits_[i] = plain[i / 8] >> (7 - i % 8) & 1;
    std::fill(coded_.begin(), coded_.end(), std::uint8_t{0});
    encoder_->set_frame_size(static_cast<unsigned>(bits));
    encoder_->generic_work(bits_.data(), coded_.data());

    std::vector<std::uint8_t> framed((2 * (bits + tail_bits) + 7) / 8);
    std::size_t sent = 0;
    for_each_interleaved(8 * framed.size(), [&](std::size_t place) {
      framed[sent / 8] = static_cast<std::uint8_t>(framed[sent / 8] << 1 | coded_[place]);
      ++sent;
    });
    return framed;
  }

  /// Hard decisions. Nothing if no frame is that long.
  std::vector<std::uint8_t> decode(std::span<const std::uint8_t> framed) {
    if (framed.size() < 2 || framed.size() % 2 != 0) return {};
    const std::size_t bits = 4 * (framed.size() - 2);
    if (bits > bits_.size()) return {};
    std::size_t got = 0;
    for_each_interleaved(8 * framed.size(), [&](std::size_t place) {
      coded_[place] = (framed[got / 8] >> (7 - got % 8) & 1) != 0 ? received_one : received_zero;
      ++got;
    });
    decoder_->set_frame_size(static_cast<unsigned>(bits));
    decoder_->generic_work(coded_.data(), bits_.data());
    std::vector<std::uint8_t> plain(bits / 8);
    for (std::size_t i = 0; i < bits; ++i) {
      plain[i / 8] = static_cast<std::uint8_t>(plain[i / 8] << 1 | (bits_[i] & 1));
    }
    return plain;
  }

 private:
  static constexpr int constraint = 7;
  static std::vector<int> polynomials() { return {109, 79}; }  // as gr-fec writes 133 and 171

  // VOLK's Viterbi decoder takes 0 to 255 for certainly 0 to certainly 1, and counts paths' metrics
  // in a byte, with saturation. Hard decisions at the ends of the scale would saturate it (one
  // frame of 1,000 bytes in six is lost at a bit error rate of 1 %); nearer to its middle, none.
  static constexpr std::uint8_t received_zero = 104;
  static constexpr std::uint8_t received_one = 255 - received_zero;

  /// Calls `visit` with the place of each bit, in the order they go on the air.
  template <class Visit>
  static void for_each_interleaved(std::size_t bits, Visit visit) {
    const auto columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(bits))));
    for (std::size_t column = 0; column < columns; ++column) {
      for (std::size_t place = column; place < bits; place += columns) visit(place);
    }
  }

  fec::generic_encoder::sptr encoder_;
  fec::generic_decoder::sptr decoder_;
  volk::vector<std::uint8_t> bits_;   // one a byte
  volk::vector<std::uint8_t> coded_;  // likewise; from the air, on the decoder's scale
};

framing::framing(fec_type fec, bool whiten, std::size_t max_payload)
    : fec_(fec), max_payload_(max_payload) {
  if (max_payload < 1 || max_payload > longest_payload) {
    throw std::invalid_argument("max_payload: " + std::to_string(max_payload) +
                                " is not from 1 to " + std::to_string(longest_payload));
  }
  if (whiten) whitening_ = whitening_sequence(framed_bytes(max_payload, fec));
  if (fec == fec_type::convolutional) {
    code_ = std::make_unique<code>(framed_bytes(max_payload, fec_type::none));
  }
}

framing::~framing() = default;

void framing::whiten(std::span<std::uint8_t> bytes) const {
  if (whitening_.empty()) return;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] ^= whitening_[i];
}

std::vector<std::uint8_t> framing::frame(std::uint32_t sequence,
                                         std::span<const std::uint8_t> payload) {
  if (payload.empty() || payload.size() > max_payload_) {
    throw std::length_error("a payload of " + std::to_string(payload.size()) +
                            " bytes; this framing takes 1 to " + std::to_string(max_payload_));
  }
  std::vector<std::uint8_t> framed(framed_bytes(payload.size(), fec_type::none));
  put(framed.data(), static_cast<std::uint16_t>(payload.size()));
  put(framed.data() + 2, sequence);
  framed[6] = flags();
  std::memcpy(framed.data() + header_bytes, payload.data(), payload.size());
  const std::size_t covered = framed.size() - crc_bytes;
  put(framed.data() + covered, crc_of({framed.data(), covered}));
  if (code_) framed = code_->encode(framed);
  whiten(framed);
  return framed;
}

std::optional<framing::content> framing::deframe(std::span<const std::uint8_t> framed) {
  if (framed.size() > framed_bytes(max_payload_, fec_)) return std::nullopt;
  std::vector<std::uint8_t> plain(framed.begin(), framed.end());
  whiten(plain);
  if (code_) plain = code_->decode(plain);
  if (plain.size() <= header_bytes + crc_bytes) return std::nullopt;

  const std::size_t covered = plain.size() - crc_bytes;
  const bool whole = get<std::uint32_t>(plain.data() + covered) == crc_of({plain.data(), covered});
  const std::size_t length = get<std::uint16_t>(plain.data());
  if (!whole || length != covered - header_bytes || plain[6] != flags()) return std::nullopt;
  const auto payload = std::span(plain).subspan(header_bytes, length);
  return content{get<std::uint32_t>(plain.data() + 2), {payload.begin(), payload.end()}};
}

}  // namespace nagi
}  // namespace gr
