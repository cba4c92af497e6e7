/* SPDX-License-Identifier: Apache-2.0 */
#include "packet_demux_impl.h"

#include <gnuradio/io_signature.h>

#include <algorithm>
#include <cmath>

#include "packet_limits.h"
#include "pdu.h"

namespace gr {
namespace nagi {

namespace {

const char* const who = "packet_demux";

std::span<const gr_complex> samples_of(const pmt::pmt_t& vector) {
  std::size_t size = 0;
  const gr_complex* first = pmt::c32vector_elements(vector, size);
  return {first, size};
}

pmt::pmt_t numbered_port(const std::string& name, std::size_t index) {
  return pmt::mp(index == 0 ? name : name + std::to_string(index));
}

const pmt::pmt_t& symbols_port() {
  static const pmt::pmt_t port = pmt::mp("symbols");
  return port;
}

pmt::pmt_t lost(const pmt::pmt_t& meta, Outcome outcome) {
  return make_pdu(pmt::dict_add(meta, key::outcome(), pmt::from_long(static_cast<long>(outcome))),
                  std::span<const std::uint8_t>());
}

}  // namespace

packet_demux::sptr packet_demux::make(const packet_demux_config& config) {
  constexpr int maximum = 1 << 16;
  PreambleShape shape{config.preamble,
                      in_range("packet_demux: repeat_begin", config.repeat_begin, 0, maximum),
                      in_range("packet_demux: repeat_lag", config.repeat_lag, 1, maximum),
                      in_range("packet_demux: repeat_length", config.repeat_length, 1, maximum),
                      in_range("packet_demux: spread", config.spread, 0, maximum),
                      config.threshold};
  const packet_demux_impl::Items items{
      in_range("packet_demux: item_samples", config.item_samples, 1, maximum),
      in_range("packet_demux: item_prefix", config.item_prefix, 0, config.item_samples - 1),
      in_range("packet_demux: item_symbols", config.item_symbols, 1, maximum),
      in_range("packet_demux: header_items", config.header_items, 1, maximum),
      in_range("packet_demux: overlap", config.overlap, 0, maximum)};
  packet_demux_impl::Quality quality{
      config.snr_offset_db, pmt::mp(config.channel_key), {}, config.soft_bits};
  for (const int index : config.weights) {
    quality.weights.push_back(in_range("packet_demux: weights", index, 0, config.item_samples - 1));
  }
  if (!config.weights.empty() && config.weights.size() != items.symbols) {
    throw std::invalid_argument("packet_demux: weights must have one index per symbol of an item");
  }
  std::vector<std::size_t> demodulators;
  for (const int index : config.demodulators) {
    demodulators.push_back(in_range("packet_demux: demodulators", index, 0,
                                    static_cast<long>(config.constellations.size()) - 1));
  }
  if (demodulators.size() != config.constellations.size()) {
    throw std::invalid_argument("packet_demux: demodulators must have one index per constellation");
  }
  return gnuradio::make_block_sptr<packet_demux_impl>(
      PacketSymbols(config.constellations, config.header_symbols),
      PreambleDetector(std::move(shape)), items, std::move(quality), std::move(demodulators),
      in_range("packet_demux: longest", config.longest, 1, PacketSymbols::longest));
}

packet_demux_impl::packet_demux_impl(PacketSymbols symbols, PreambleDetector detector, Items items,
                                     Quality quality, std::vector<std::size_t> demodulators,
                                     std::size_t longest)
    : gr::block("packet_demux", gr::io_signature::make(0, 0, 0), gr::io_signature::make(0, 0, 0)),
      symbols_(std::move(symbols)),
      detector_(std::move(detector)),
      items_(items),
      quality_(std::move(quality)),
      demodulators_(std::move(demodulators)),
      longest_(longest) {
  lose_no_messages();
  const auto handle = [this](const pmt::pmt_t& port, auto handler) {
    message_port_register_in(port);
    set_msg_handler(port, handler);
  };
  handle(pmt::mp("bursts"), [this](const pmt::pmt_t& message) { take(message); });
  handle(pmt::mp("header_symbols"), [this](const pmt::pmt_t& message) { take_header(message); });
  message_port_register_out(pmt::mp("header"));
  const std::size_t last = *std::max_element(demodulators_.begin(), demodulators_.end());
  for (std::size_t i = 0; i <= last; ++i) {
    handle(numbered_port("payload_symbols", i),
           [this, i](const pmt::pmt_t& message) { take_payload(message, i); });
    message_port_register_out(numbered_port("payload", i));
  }
  message_port_register_out(pmt::mp("pdus"));
  message_port_register_out(symbols_port());
}

void packet_demux_impl::take(const pmt::pmt_t& message) {
  const Pdu pdu = open_pdu(message, who);
  if (!pmt::is_c32vector(pdu.data)) {
    throw std::invalid_argument("packet_demux: a burst does not contain complex samples");
  }
  Burst burst;
  burst.meta = pdu.meta;
  burst.samples = pdu.data;
  if (const auto detection = detector_.detect(samples_of(burst.samples))) {
    burst.detection = *detection;
  } else {
    burst.stage = Stage::done;
    burst.result = lost(burst.meta, Outcome::not_detected);
  }
  bursts_.push_back(std::move(burst));
  advance();
}

void packet_demux_impl::take_header(const pmt::pmt_t& message) {
  Burst& burst = awaiting_header();
  const Pdu pdu = open_pdu(message, who);
  const auto symbols = samples_of(pdu.data);
  if (symbols.size() != symbols_.header_size()) {
    throw std::logic_error("packet_demux: the demodulator returned a header of another size");
  }
  burst.channel = pmt::dict_ref(pdu.meta, quality_.key, pmt::PMT_NIL);
  const auto weights = power_gains(burst.channel);
  const auto header = symbols_.parse_header(symbols, weights);
  if (header && header->bytes > 0 && header->bytes <= longest_) {
    burst.header = *header;
    burst.header_noise = symbols_.header_noise(symbols, weights);
    burst.stage = Stage::payload;
    burst.handed_on = false;
  } else {
    burst.stage = Stage::done;
    burst.result = lost(burst.meta, Outcome::header_error);
  }
  advance();
}

void packet_demux_impl::take_payload(const pmt::pmt_t& message, std::size_t demodulator) {
  Burst& burst = awaiting_payload(demodulator);
  const Pdu pdu = open_pdu(message, who);
  const std::size_t count = symbols_.payload_size(burst.header);
  const auto symbols = samples_of(pdu.data);
  if (symbols.size() < count) {
    throw std::logic_error("packet_demux: the demodulator returned too few symbols");
  }
  const auto payload_symbols = symbols.first(count);
  const auto weights = power_gains(
      burst.channel, pmt::dict_ref(pdu.meta, quality_.key, pmt::PMT_NIL), payload_symbols.size());
  pmt::pmt_t meta = burst.meta;
  meta = pmt::dict_add(meta, key::mode(), pmt::from_long(static_cast<long>(burst.header.mode)));
  meta =
      pmt::dict_add(meta, key::snr_db(), pmt::from_double(snr_db(burst, payload_symbols, weights)));
  if (!pmt::is_null(message_subscribers(symbols_port()))) {
    message_port_pub(symbols_port(), make_burst(meta, payload_symbols));
  }
  if (quality_.soft_bits) {
    const auto soft = symbols_.soft_bits(payload_symbols, weights, burst.header);
    meta = pmt::dict_add(meta, key::soft_bits(), pmt::init_f32vector(soft.size(), soft.data()));
  }
  burst.result = make_pdu(meta, symbols_.decide(payload_symbols, burst.header));
  burst.stage = Stage::done;
  advance();
}

/// Return the first burst that waits for the symbols of its header.
packet_demux_impl::Burst& packet_demux_impl::awaiting_header() {
  for (Burst& burst : bursts_) {
    if (burst.stage == Stage::header && burst.handed_on) return burst;
  }
  throw std::logic_error("packet_demux: symbols arrived for which no burst waits");
}

/// Return the first burst that waits for the symbols of its payload from this demodulator.
packet_demux_impl::Burst& packet_demux_impl::awaiting_payload(std::size_t demodulator) {
  for (Burst& burst : bursts_) {
    if (burst.stage == Stage::payload && burst.handed_on &&
        demodulators_[burst.header.mode] == demodulator) {
      return burst;
    }
  }
  throw std::logic_error("packet_demux: symbols arrived for which no burst waits");
}

/// Publish completed bursts in order and hand the next bursts on to the demodulators.
void packet_demux_impl::advance() {
  while (!bursts_.empty() && bursts_.front().stage == Stage::done) {
    message_port_pub(pmt::mp("pdus"), bursts_.front().result);
    bursts_.pop_front();
  }
  const std::size_t in_view = std::min(bursts_.size(), max_in_flight);
  for (std::size_t i = 0; i < in_view; ++i) {
    Burst& burst = bursts_[i];
    // The demodulator returns headers in order, so no burst waits for its header while a later
    // burst waits for its payload. Payloads are therefore handed on in order as well.
    if (burst.stage != Stage::done && !burst.handed_on) hand_on(burst);
  }
}

void packet_demux_impl::hand_on(Burst& burst) {
  burst.handed_on = true;
  pmt::pmt_t meta = pmt::make_dict();
  meta = pmt::dict_add(meta, pmt::mp("timing"), pmt::from_double(burst.detection.fraction));
  if (burst.stage == Stage::header) {
    meta = pmt::dict_add(meta, pmt::mp("item_count"),
                         pmt::from_long(static_cast<long>(items_.header)));
    message_port_pub(pmt::mp("header"),
                     pmt::cons(meta, cut(burst, 0, items_.header, burst.detection.frequency)));
    return;
  }
  const std::size_t symbols = symbols_.payload_size(burst.header);
  const std::size_t count = (symbols + items_.symbols - 1) / items_.symbols;
  meta = pmt::dict_add(meta, pmt::mp("item_count"), pmt::from_long(static_cast<long>(count)));
  meta = pmt::dict_add(meta, quality_.key, burst.channel);
  const double frequency = payload_frequency(burst, count);
  message_port_pub(numbered_port("payload", demodulators_[burst.header.mode]),
                   pmt::cons(meta, cut(burst, items_.header, count, frequency)));
}

/// Return `count` items and the overlap, from item `first` on, without their cyclic prefixes. The
/// frequency offset `frequency` (rad per sample) is removed.
pmt::pmt_t packet_demux_impl::cut(const Burst& burst, std::size_t first, std::size_t count,
                                  double frequency) const {
  const auto samples = samples_of(burst.samples);
  const std::size_t item_length = items_.samples - items_.prefix;
  // The two estimates of the frequency, from the preamble and from the payload, agree on the phase
  // in the middle of the last header item.
  const auto pivot = static_cast<double>(items_.header * items_.samples) -
                     0.5 * static_cast<double>(items_.samples);
  const double phase = burst.detection.frequency * pivot;
  const std::complex<double> step = std::polar(1.0, -frequency);
  pmt::pmt_t result = pmt::make_c32vector((count + items_.overlap) * item_length, gr_complex());
  std::size_t length = 0;
  gr_complex* out = pmt::c32vector_writable_elements(result, length);
  for (std::size_t item = 0; item < count + items_.overlap; ++item) {
    const std::size_t offset = (first + item) * items_.samples + items_.prefix;
    std::complex<double> turn =
        std::polar(1.0, -(phase + frequency * (static_cast<double>(offset) - pivot)));
    std::ptrdiff_t index = burst.detection.begin + static_cast<std::ptrdiff_t>(offset);
    for (std::size_t i = 0; i < item_length; ++i, ++index, ++out) {
      if (index >= 0 && index < std::ssize(samples)) {
        const gr_complex value = samples[static_cast<std::size_t>(index)];
        const auto real = static_cast<float>(turn.real());
        const auto imag = static_cast<float>(turn.imag());
        *out = {value.real() * real - value.imag() * imag,
                value.real() * imag + value.imag() * real};
      }
      turn = {turn.real() * step.real() - turn.imag() * step.imag(),
              turn.real() * step.imag() + turn.imag() * step.real()};
    }
  }
  return result;
}

/// Return the frequency offset of the payload in rad per sample. The estimate from the preamble is
/// combined with an estimate from all cyclic prefixes of the payload, each of which repeats the end
/// of its item (J.-J. van de Beek et al., "ML estimation of time and frequency offset in OFDM
/// systems", IEEE Trans. Signal Process. 45(7), 1997). Each estimate is weighted by the inverse of
/// its variance.
double packet_demux_impl::payload_frequency(const Burst& burst, std::size_t count) const {
  const double preamble_estimate = burst.detection.frequency;
  if (items_.prefix == 0) return preamble_estimate;
  const auto samples = samples_of(burst.samples);
  const std::size_t lag = items_.samples - items_.prefix;
  // Delayed paths of the previous item may reach into the first quarter of the prefix.
  const std::size_t used = items_.prefix - items_.prefix / 4;
  std::complex<double> sum;
  for (std::size_t item = items_.header; item < items_.header + count; ++item) {
    const std::ptrdiff_t begin =
        burst.detection.peak +
        static_cast<std::ptrdiff_t>(item * items_.samples + items_.prefix - used);
    for (std::ptrdiff_t i = begin; i < begin + static_cast<std::ptrdiff_t>(used); ++i) {
      const std::ptrdiff_t j = i + static_cast<std::ptrdiff_t>(lag);
      if (i < 0 || j >= std::ssize(samples)) continue;
      const std::complex<double> a = samples[static_cast<std::size_t>(i)];
      const std::complex<double> b = samples[static_cast<std::size_t>(j)];
      sum += std::complex<double>(a.real() * b.real() + a.imag() * b.imag(),
                                  a.real() * b.imag() - a.imag() * b.real());
    }
  }
  const auto span = static_cast<double>(lag);
  const double difference = std::arg(sum * std::polar(1.0, -preamble_estimate * span)) / span;
  const double weight = static_cast<double>(count * used) * span * span;
  return preamble_estimate + difference * weight / (weight + burst.detection.frequency_weight);
}

/// Return the power gain of the channel for each symbol of an item, or {1} if no weights are
/// configured.
std::vector<float> packet_demux_impl::power_gains(const pmt::pmt_t& channel) const {
  if (quality_.weights.empty()) return {1.0f};
  const auto gains = samples_of(channel);
  std::vector<float> powers;
  for (const std::size_t index : quality_.weights) powers.push_back(std::norm(gains[index]));
  return powers;
}

/// Return the power gains of the channel for `count` symbols, interpolated linearly from the
/// channel state `before` to `after`.
std::vector<float> packet_demux_impl::power_gains(const pmt::pmt_t& before, const pmt::pmt_t& after,
                                                  std::size_t count) const {
  const auto first = power_gains(before);
  const auto last = power_gains(after);
  std::vector<float> powers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float progress = static_cast<float>(i) / static_cast<float>(count);
    const std::size_t index = i % first.size();
    powers[i] = first[index] + progress * (last[index] - first[index]);
  }
  return powers;
}

double packet_demux_impl::snr_db(const Burst& burst, std::span<const gr_complex> symbols,
                                 std::span<const float> weights) const {
  const std::size_t mode = burst.header.mode;
  double signal = 0;
  double noise = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const gr_complex ideal = symbols_.nearest(symbols[i], mode);
    signal += weights[i % weights.size()] * std::norm(ideal);
    noise += weights[i % weights.size()] * std::norm(symbols[i] - ideal);
  }
  // The ratio is limited to 120 dB, because float samples cannot resolve more.
  double ratio = std::max(noise / signal, 1e-12);
  // If more than about 1 symbol in 200 is nearest to a point that was not sent, the decisions make
  // the noise look smaller. The noise of the header is used then, because the symbols of the header
  // are known.
  // Standard deviations of the noise from a point to the decision boundary.
  constexpr double reliable = 3;
  const double distance = symbols_.decision_distance(mode);
  if (distance * distance < reliable * reliable * burst.header_noise / 2) {
    ratio = burst.header_noise;
  }
  return -10 * std::log10(ratio) - quality_.offset_db;
}

}  // namespace nagi
}  // namespace gr
