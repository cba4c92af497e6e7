// SPDX-License-Identifier: Apache-2.0
#include "native/flow_columns.hpp"

#include <array>
#include <bit>

namespace nagi::captures {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }

// The functions of columns: templates of Column::value, by the member that they return.
using Get = std::int64_t (*)(const Connection&, unsigned, const Direction&);

template <auto member>
constexpr Get number = [](const Connection&, unsigned, const Direction& its) {
  return static_cast<std::int64_t>(its.*member);
};
template <auto member>
constexpr Get all =
    [](const Connection&, unsigned, const Direction& its) { return its.counts.*member; };
template <auto member>
constexpr Get inside =
    [](const Connection&, unsigned, const Direction& its) { return its.inside().*member; };
template <auto member>
constexpr Get samples = [](const Connection&, unsigned, const Direction& its) {
  return its.*member ? static_cast<std::int64_t>((its.*member)->count()) : 0;
};
/// Return a statistic of a distribution, such as its mean, or NaN without samples.
template <auto member, auto get>
constexpr Get statistic = [](const Connection&, unsigned, const Direction& its) {
  return bits(its.*member ? ((its.*member).get()->*get)() : nan);
};
template <auto member, int percent>
constexpr Get quantile = [](const Connection&, unsigned, const Direction& its) {
  return bits(its.*member ? (its.*member)->quantile(percent / 100.0) : nan);
};
template <auto member>
constexpr Get mean = [](const Connection&, unsigned, const Direction& its) {
  const Extent& extent = its.*member;
  return bits(extent.count == 0
                  ? nan
                  : static_cast<double>(extent.sum) / static_cast<double>(extent.count));
};
template <auto member, auto which>
constexpr Get extreme = [](const Connection&, unsigned, const Direction& its) {
  const Extent& extent = its.*member;
  return bits(extent.count == 0 ? nan : static_cast<double>(extent.*which));
};

std::int64_t handshake_rtt(const Connection& connection, unsigned /*direction*/,
                           const Direction& /*its*/) {
  if (!connection.handshake) return bits(nan);
  const std::int64_t to_listener = connection.handshake->to_listener();
  const std::int64_t to_caller = connection.handshake->to_caller();
  const bool is_known = to_listener != Handshake::none && to_caller != Handshake::none;
  return bits(is_known ? static_cast<double>(to_listener + to_caller) : nan);
}

constexpr auto sequence = &Direction::rtt_sequence;
constexpr auto stamps = &Direction::rtt_timestamps;
constexpr auto in_flight = &Direction::in_flight;
constexpr auto window = &Direction::window;

constexpr auto columns = std::to_array<Column>({
    {"first_ns", Kind::whole, number<&Direction::first_ns>},
    {"last_ns", Kind::whole, number<&Direction::last_ns>},
    {"first_data_ns", Kind::whole, number<&Direction::first_data_ns>},
    {"last_data_ns", Kind::whole, number<&Direction::last_data_ns>},
    {"ip_bytes_to_data", Kind::whole, number<&Direction::ip_bytes_to_data>},
    {"uncaptured_bytes", Kind::whole,
     [](const Connection&, unsigned, const Direction& its) { return its.uncaptured_bytes(); }},
    {"packets", Kind::whole, all<&Counts::packets>},
    {"ip_bytes", Kind::whole, all<&Counts::ip_bytes>},
    {"payload_bytes", Kind::whole, all<&Counts::payload_bytes>},
    {"data_packets", Kind::whole, all<&Counts::data_packets>},
    {"first_time_bytes", Kind::whole, all<&Counts::first_time_bytes>},
    {"retransmitted_packets", Kind::whole, all<&Counts::retransmitted_packets>},
    {"retransmitted_bytes", Kind::whole, all<&Counts::retransmitted_bytes>},
    {"out_of_order_packets", Kind::whole, all<&Counts::out_of_order_packets>},
    {"packets_inside", Kind::whole, inside<&Counts::packets>},
    {"ip_bytes_inside", Kind::whole, inside<&Counts::ip_bytes>},
    {"payload_bytes_inside", Kind::whole, inside<&Counts::payload_bytes>},
    {"data_packets_inside", Kind::whole, inside<&Counts::data_packets>},
    {"first_time_bytes_inside", Kind::whole, inside<&Counts::first_time_bytes>},
    {"retransmitted_packets_inside", Kind::whole, inside<&Counts::retransmitted_packets>},
    {"retransmitted_bytes_inside", Kind::whole, inside<&Counts::retransmitted_bytes>},
    {"out_of_order_packets_inside", Kind::whole, inside<&Counts::out_of_order_packets>},
    {"duplicate_acks", Kind::whole, number<&Direction::duplicate_acks>},
    {"sack_packets", Kind::whole, number<&Direction::sack_packets>},
    {"sack_blocks", Kind::whole, number<&Direction::sack_blocks>},
    {"keep_alives", Kind::whole, number<&Direction::keep_alives>},
    {"zero_window_packets", Kind::whole, number<&Direction::zero_window_packets>},
    {"window_probes", Kind::whole, number<&Direction::window_probes>},
    {"captured_twice", Kind::whole, number<&Direction::captured_twice>},
    {"mss", Kind::whole, number<&Direction::mss>},
    {"window_scale", Kind::whole, number<&Direction::window_scale>},
    {"sack_permitted", Kind::truth, number<&Direction::sack_permitted>},
    {"timestamps", Kind::truth, number<&Direction::timestamps>},
    {"syn_packets", Kind::whole, number<&Direction::syn_packets>},
    {"fin_packets", Kind::whole, number<&Direction::fin_packets>},
    {"rst_packets", Kind::whole, number<&Direction::rst_packets>},
    {"complete_handshake", Kind::truth,
     [](const Connection& connection, unsigned, const Direction&) {
       return std::int64_t{connection.complete_handshake};
     }},
    {"handshake_rtt_ns", Kind::real, handshake_rtt},
    {"captured_at", Kind::whole,
     [](const Connection& connection, unsigned direction, const Direction&) {
       return static_cast<std::int64_t>(connection.capture_point(direction));
     }},
    {"rtt_sequence_count", Kind::whole, samples<sequence>},
    {"rtt_sequence_min_ns", Kind::real, statistic<sequence, &Distribution::min>},
    {"rtt_sequence_mean_ns", Kind::real, statistic<sequence, &Distribution::mean>},
    {"rtt_sequence_median_ns", Kind::real, quantile<sequence, 50>},
    {"rtt_sequence_p95_ns", Kind::real, quantile<sequence, 95>},
    {"rtt_sequence_p99_ns", Kind::real, quantile<sequence, 99>},
    {"rtt_sequence_max_ns", Kind::real, statistic<sequence, &Distribution::max>},
    {"rtt_timestamps_count", Kind::whole, samples<stamps>},
    {"rtt_timestamps_min_ns", Kind::real, statistic<stamps, &Distribution::min>},
    {"rtt_timestamps_mean_ns", Kind::real, statistic<stamps, &Distribution::mean>},
    {"rtt_timestamps_median_ns", Kind::real, quantile<stamps, 50>},
    {"rtt_timestamps_p95_ns", Kind::real, quantile<stamps, 95>},
    {"rtt_timestamps_p99_ns", Kind::real, quantile<stamps, 99>},
    {"rtt_timestamps_max_ns", Kind::real, statistic<stamps, &Distribution::max>},
    {"in_flight_mean_bytes", Kind::real, mean<in_flight>},
    {"in_flight_max_bytes", Kind::real, extreme<in_flight, &Extent::max>},
    {"window_min_bytes", Kind::real, extreme<window, &Extent::min>},
    {"window_mean_bytes", Kind::real, mean<window>},
    {"window_max_bytes", Kind::real, extreme<window, &Extent::max>},
});

// A stored connection is a mask of bits, and the stored numbers: five numbers for the endpoints,
// and the columns of both rows.
constexpr std::size_t endpoint_words = 5;
constexpr std::size_t words = endpoint_words + 2 * columns.size();
constexpr std::size_t mask_bytes = (words + 7) / 8;

/// Convert a column's value to its stored form, or back. The most frequent value (0, or NaN for a
/// real number) is stored as 0.
std::uint64_t squeeze(const Column& column, std::int64_t value) {
  return static_cast<std::uint64_t>(column.kind == Kind::real ? value ^ bits(nan) : value);
}

/// Append a number in 7-bit groups, the lowest group first.
void put(std::vector<std::uint8_t>& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
  to.push_back(static_cast<std::uint8_t>(value));
}
/// Read a number that put() wrote, and advance `at` to the byte after it.
std::uint64_t take(const std::uint8_t*& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = *at++;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

}  // namespace

std::span<const Column> flow_columns() { return columns; }

void FlowRows::add(const Connection& connection) {
  packed_.assign(mask_bytes, 0);
  std::size_t index = 0;
  const auto add = [&](std::uint64_t value) {
    if (value != 0) {
      packed_[index / 8] |= static_cast<std::uint8_t>(1U << index % 8);
      put(packed_, value);
    }
    ++index;
  };
  const Endpoints& ends = connection.endpoints;
  for (const std::uint64_t value :
       {ends.source[0], ends.source[1], ends.destination[0], ends.destination[1], ends.rest}) {
    add(value);
  }
  static const Direction blank;
  for (unsigned direction = 0; direction < 2; ++direction) {
    const Direction* its = connection.directions[direction].get();
    for (const Column& column : columns) {
      add(squeeze(column, column.value(connection, direction, its != nullptr ? *its : blank)));
    }
  }
  if (chunks_.empty() || chunks_.back().size() + packed_.size() > chunk_bytes) {
    chunks_.emplace_back().reserve(chunk_bytes);
  }
  if (slots_.size() <= connection.number) slots_.resize(connection.number + 1);
  slots_[connection.number] = {static_cast<std::uint32_t>(chunks_.size() - 1),
                               static_cast<std::uint32_t>(chunks_.back().size())};
  chunks_.back().insert(chunks_.back().end(), packed_.begin(), packed_.end());
}

void FlowRows::read(std::size_t number, Rows& rows) const {
  const Slot slot = slots_[number];
  const std::uint8_t* mask = chunks_[slot.chunk].data() + slot.offset;
  const std::uint8_t* at = mask + mask_bytes;
  std::size_t index = 0;
  const auto next = [&] {
    const bool is_stored = (mask[index / 8] >> index % 8 & 1) != 0;
    ++index;
    return is_stored ? take(at) : 0;
  };
  rows.endpoints.source = {next(), next()};
  rows.endpoints.destination = {next(), next()};
  rows.endpoints.rest = next();
  for (auto& values : rows.values) {
    values.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      values[i] = static_cast<std::int64_t>(squeeze(columns[i], static_cast<std::int64_t>(next())));
    }
  }
}

std::size_t FlowRows::bytes() const {
  return chunks_.size() * chunk_bytes + slots_.capacity() * sizeof(Slot);
}

}  // namespace nagi::captures
