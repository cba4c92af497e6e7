/* SPDX-License-Identifier: Apache-2.0 */
#include <gnuradio/fec/cc_encoder.h>
#include <gnuradio/nagi/framing.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <volk/volk_alloc.hh>

#include "viterbi.h"

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

/// Return the sequence of DVB-T's energy dispersal.
std::vector<std::uint8_t> whitening_sequence(std::size_t bytes) {
  std::vector<std::uint8_t> sequence(bytes);
  // The register is "100101010000000", with its first cell in the lowest bit.
  unsigned state = 0b000000010101001;
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

namespace {

/// A puncturing pattern: the bits of the code's output, two bits per step, that are sent (IEEE
/// 802.11-2020, 17.3.5.6). The bits are in the order of the output. The pattern repeats.
struct Puncturing {
  const char* name;
  std::size_t period;      // in bits of the output
  std::uint8_t sent_bits;  // bit i is 1 if bit i of a period is sent
  std::size_t sent_per_period;

  bool is_sent(std::size_t bit) const { return (sent_bits >> bit % period & 1) != 0; }
  /// Return the number of bits that are sent of the first `bits` bits.
  std::size_t count_sent(std::size_t bits) const {
    std::size_t count = bits / period * sent_per_period;
    for (std::size_t bit = 0; bit < bits % period; ++bit) count += is_sent(bit) ? 1 : 0;
    return count;
  }
};

constexpr std::array puncturings = {Puncturing{"none", 1, 0b1, 1}, Puncturing{"1/2", 2, 0b11, 2},
                                    Puncturing{"2/3", 4, 0b0111, 3},
                                    Puncturing{"3/4", 6, 0b100111, 4}};

const Puncturing& puncturing_of(code_rate rate) {
  return puncturings[static_cast<std::size_t>(rate)];
}

std::size_t coded_bits(std::size_t plain_bytes) { return 2 * (8 * plain_bytes + tail_bits); }

std::size_t coded_bytes(std::size_t plain_bytes, code_rate rate) {
  if (rate == code_rate::none) return plain_bytes;
  return (puncturing_of(rate).count_sent(coded_bits(plain_bytes)) + 7) / 8;
}

/// Return the number of bytes before encoding, given the bytes of the frame, or nullopt if no frame
/// has this length.
std::optional<std::size_t> plain_bytes_of(std::size_t frame_bytes, code_rate rate) {
  std::size_t low = 0;
  std::size_t high = frame_bytes;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (coded_bytes(middle, rate) < frame_bytes) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return coded_bytes(low, rate) == frame_bytes ? std::optional(low) : std::nullopt;
}

/// The rows and columns of the interleaver. Successive bits of a row are sent as many bits apart as
/// there are rows. The number of rows has no factor of 2 or 3, so that successive bits of the code
/// alternate between all positions in a symbol, which are not equally reliable.
struct Interleaver {
  std::size_t rows;
  std::size_t columns;
  std::size_t full;  // number of rows, the first ones, with a bit in the last column

  explicit Interleaver(std::size_t bits) {
    rows = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(bits))));
    while (rows % 2 == 0 || rows % 3 == 0) ++rows;
    columns = (bits + rows - 1) / rows;
    full = bits - (columns - 1) * rows;
  }
  /// Call `visit` with each bit's position in the code's output, in the order in which the bits are
  /// sent.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t height = column + 1 < columns ? rows : full;
      for (std::size_t row = 0; row < height; ++row) {
        visit(row * (columns - 1) + std::min(row, full) + column);
      }
    }
  }
};

}  // namespace

code_rate code_rate_from_name(const std::string& name) {
  for (std::size_t i = 0; i < puncturings.size(); ++i) {
    if (name == puncturings[i].name) return static_cast<code_rate>(i);
  }
  const std::string instead = name == "convolutional" ? "; it is called 1/2 now" : "";
  throw std::invalid_argument("code_rate: \"" + name + "\" is not one of none, 1/2, 2/3, 3/4" +
                              instead);
}

std::vector<code_rate> code_rates_from_names(const std::vector<std::string>& names) {
  if (names.empty()) throw std::invalid_argument("code_rates: the list is empty");
  std::vector<code_rate> rates;
  for (const std::string& name : names) rates.push_back(code_rate_from_name(name));
  return rates;
}

std::size_t framed_bytes(std::size_t payload_bytes, code_rate rate) {
  return coded_bytes(header_bytes + payload_bytes + crc_bytes, rate);
}

/// The convolutional code with its puncturing and interleaver.
class framing::code {
 public:
  code(std::size_t max_bytes, code_rate rate)
      : rate_(rate),
        encoder_(fec::code::cc_encoder::make(static_cast<int>(8 * max_bytes), constraint, 2,
                                             polynomials(), 0, CC_TERMINATED)),
        bits_(8 * max_bytes + 64),
        coded_(coded_bits(max_bytes) + 64) {}

  std::vector<std::uint8_t> encode(std::span<const std::uint8_t> plain) {
    const std::size_t bits = 8 * plain.size();
    for (std::size_t i = 0; i < bits; ++i) bits_[i] = plain[i / 8] >> (7 - i % 8) & 1;
    encoder_->set_frame_size(static_cast<unsigned>(bits));
    encoder_->generic_work(bits_.data(), coded_.data());

    std::vector<std::uint8_t> framed(coded_bytes(plain.size(), rate_));
    std::vector<std::uint8_t> punctured(8 * framed.size());  // the last bits are padding
    std::size_t next = 0;
    for (std::size_t i = 0; i < coded_bits(plain.size()); ++i) {
      if (puncturing_of(rate_).is_sent(i)) punctured[next++] = coded_[i];
    }
    std::size_t sent = 0;
    Interleaver(punctured.size()).for_each([&](std::size_t position) {
      framed[sent / 8] = static_cast<std::uint8_t>(framed[sent / 8] << 1 | punctured[position]);
      ++sent;
    });
    return framed;
  }

  /// Return the decoded bytes. `soft` has one value per bit, positive for 1. Returns an empty
  /// vector if no frame has this length.
  std::vector<std::uint8_t> decode(std::span<const float> soft) {
    if (soft.empty() || soft.size() % 8 != 0) return {};
    const auto bytes = plain_bytes_of(soft.size() / 8, rate_);
    if (!bytes || *bytes == 0) return {};
    const auto received = quantized(soft);
    std::vector<std::int8_t> coded(coded_bits(*bytes));  // 0 for a bit that was not sent
    std::size_t next = 0;
    for (std::size_t i = 0; i < coded.size(); ++i) {
      if (puncturing_of(rate_).is_sent(i)) coded[i] = received[next++];
    }
    const auto bits = decoder_.decode(coded);
    std::vector<std::uint8_t> plain(*bytes);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      plain[i / 8] = static_cast<std::uint8_t>(plain[i / 8] << 1 | bits[i]);
    }
    return plain;
  }

 private:
  static constexpr int constraint = 7;
  static std::vector<int> polynomials() { return {109, 79}; }  // gr-fec's notation of 133 and 171

  /// Return the soft bits as integers, in the order of the punctured output. The mean magnitude
  /// becomes 32, so that rounding costs less than 0.01 dB and few values are clipped at 127.
  static std::vector<std::int8_t> quantized(std::span<const float> soft) {
    constexpr double mean_value = 32;
    double sum = 0;
    for (const float value : soft) sum += std::abs(static_cast<double>(value));
    const double scale = sum > 0 ? mean_value * static_cast<double>(soft.size()) / sum : 0;
    std::vector<std::int8_t> values(soft.size());
    std::size_t next = 0;
    Interleaver(soft.size()).for_each([&](std::size_t position) {
      const double value = std::clamp(static_cast<double>(soft[next++]) * scale, -127.0, 127.0);
      values[position] = static_cast<std::int8_t>(std::lround(value));
    });
    return values;
  }

  code_rate rate_;
  fec::generic_encoder::sptr encoder_;
  Viterbi decoder_;
  volk::vector<std::uint8_t> bits_;   // one bit per byte
  volk::vector<std::uint8_t> coded_;  // all of the code's output, one bit per byte
};

framing::framing(code_rate rate, bool whiten, std::size_t max_payload)
    : rate_(rate), max_payload_(max_payload) {
  if (max_payload < 1 || max_payload > longest_payload) {
    throw std::invalid_argument("max_payload: " + std::to_string(max_payload) +
                                " is not from 1 to " + std::to_string(longest_payload));
  }
  if (whiten) whitening_ = whitening_sequence(framed_bytes(max_payload, rate));
  if (rate != code_rate::none) {
    code_ = std::make_unique<code>(framed_bytes(max_payload, code_rate::none), rate);
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
  std::vector<std::uint8_t> framed(framed_bytes(payload.size(), code_rate::none));
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
  if (framed.size() > framed_bytes(max_payload_, rate_)) return std::nullopt;
  std::vector<std::uint8_t> plain(framed.begin(), framed.end());
  whiten(plain);
  if (code_) {
    std::vector<float> decided(8 * plain.size());
    for (std::size_t i = 0; i < decided.size(); ++i) {
      decided[i] = (plain[i / 8] >> (7 - i % 8) & 1) != 0 ? 1.0f : -1.0f;
    }
    plain = code_->decode(decided);
  }
  return open(plain);
}

std::optional<framing::content> framing::deframe_soft(std::span<const float> soft_bits) {
  if (!code_) throw std::logic_error("framing: soft bits can only be decoded with a code");
  if (soft_bits.size() > 8 * framed_bytes(max_payload_, rate_)) return std::nullopt;
  std::vector<float> plain(soft_bits.begin(), soft_bits.end());
  if (!whitening_.empty()) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      if ((whitening_[i / 8] >> (7 - i % 8) & 1) != 0) plain[i] = -plain[i];
    }
  }
  return open(code_->decode(plain));
}

/// Return the content of a frame that is decoded and not whitened, or nullopt if the frame is
/// invalid.
std::optional<framing::content> framing::open(std::span<const std::uint8_t> plain) const {
  if (plain.size() <= header_bytes + crc_bytes) return std::nullopt;
  const std::size_t covered = plain.size() - crc_bytes;
  const bool whole = get<std::uint32_t>(plain.data() + covered) == crc_of({plain.data(), covered});
  const std::size_t length = get<std::uint16_t>(plain.data());
  if (!whole || length != covered - header_bytes || plain[6] != flags()) return std::nullopt;
  const auto payload = plain.subspan(header_bytes, length);
  return content{get<std::uint32_t>(plain.data() + 2), {payload.begin(), payload.end()}};
}

}  // namespace nagi
}  // namespace gr
