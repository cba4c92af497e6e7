// SPDX-License-Identifier: Apache-2.0
#include "program/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace nagi::p4 {

namespace {

template <typename Number>
constexpr bool is_big = std::is_same_v<Number, Big>;

// Arithmetic of fixed width wraps around, because its upper bits are not needed.
std::int64_t unwrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
Twice unwrapped(unsigned __int128 value) { return static_cast<Twice>(value); }
std::uint64_t wrapped(std::int64_t value) { return static_cast<std::uint64_t>(value); }
unsigned __int128 wrapped(Twice value) { return static_cast<unsigned __int128>(value); }

template <typename Number>
constexpr unsigned width_of = 8 * sizeof(Number);

/// Convert words, in two's complement if `is_signed`, to a number; fixed widths keep the low bits.
template <typename Number>
Number from_words(const std::uint64_t* words, std::uint32_t limbs, std::uint32_t bits,
                  bool is_signed) {
  const bool negative = is_signed && bits > 0 && (words[(bits - 1) / 64] >> ((bits - 1) % 64) & 1);
  if constexpr (is_big<Number>) {
    Number result = 0;
    for (std::uint32_t i = limbs; i-- > 0;) {
      result <<= 64;
      result |= words[i];
    }
    if (negative) result -= Number(1) << bits;
    return result;
  } else {
    auto value = static_cast<decltype(wrapped(Number{}))>(words[0]);
    if constexpr (std::is_same_v<Number, Twice>) {
      if (limbs > 1) value |= static_cast<unsigned __int128>(words[1]) << 64;
    }
    if (negative && bits < width_of<Number>) value |= ~decltype(value){0} << bits;
    return unwrapped(value);
  }
}

template <typename Number>
Number read(const std::uint64_t* words, const Field& field) {
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    const std::uint64_t value = words[field.word];
    if (!field.is_signed || field.bits >= 64) return unwrapped(value);
    const unsigned unused = 64 - field.bits;
    return unwrapped(value << unused) >> unused;
  } else {
    return from_words<Number>(words + field.word, field.limbs, field.bits, field.is_signed);
  }
}

template <typename Number>
Number value_of(const Scope& scope, Index index);

template <typename Number>
Number operand(const Scope& scope, Index index) {
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    return unwrapped(word_of(scope, index));
  } else {
    return value_of<Number>(scope, index);
  }
}

/// Return the amount of a shift. If it is negative or larger than 2^32, return 2^32.
std::uint64_t amount_of(const Scope& scope, Index index) {
  constexpr std::uint64_t maximum = 1ULL << 32;
  const Width width = scope.program.nodes[index].width;
  if (width == Width::any) {
    const Big amount = value_of<Big>(scope, index);
    return amount < 0 || amount > maximum ? maximum : static_cast<std::uint64_t>(amount);
  }
  const Twice amount = value_of<Twice>(scope, index);
  return amount < 0 || amount > static_cast<Twice>(maximum) ? maximum
                                                            : static_cast<std::uint64_t>(amount);
}

template <typename Number>
Number shifted_left(const Number& value, std::uint64_t by) {
  if constexpr (is_big<Number>) {
    return by > 65536 ? Number(0) : Number(value << by);  // the loader permits less
  } else {
    return by >= width_of<Number> ? Number{0} : unwrapped(wrapped(value) << by);
  }
}

template <typename Number>
Number shifted_right(const Number& value, std::uint64_t by) {
  if constexpr (is_big<Number>) {
    if (by > 65536) return value < 0 ? Number(-1) : Number(0);
    if (value >= 0) return value >> by;
    return -((-value - 1) >> by) - 1;  // rounds towards minus infinity
  } else {
    return value >> std::min<std::uint64_t>(by, width_of<Number> - 1);
  }
}

/// Interpret the lowest `bits` bits as a signed number.
template <typename Number>
Number wrapped_signed(const Number& value, std::uint64_t bits) {
  if constexpr (is_big<Number>) {
    const Number modulus = Number(1) << bits;
    Number low = value % modulus;
    if (low < 0) low += modulus;
    if (low >= (modulus >> 1)) low -= modulus;
    return low;
  } else {
    if (bits >= width_of<Number>) return value;
    const auto unused = width_of<Number> - bits;
    return unwrapped(wrapped(value) << unused) >> unused;
  }
}

/// Return 2^bits. The loader ensures that it fits.
template <typename Number>
Number power(std::uint64_t bits) {
  if constexpr (is_big<Number>) {
    return Number(1) << bits;
  } else {
    return unwrapped(decltype(wrapped(Number{})){1}
                     << std::min<std::uint64_t>(bits, width_of<Number> - 2));
  }
}

template <typename Number>
Number calculate(const Scope& scope, const Node& node) {
  const auto left = [&] { return operand<Number>(scope, node.a); };
  const auto right = [&] { return operand<Number>(scope, node.b); };
  switch (node.op) {
    case Op::constant:
      if (node.a == none) return Number(unwrapped(node.value));
      {
        const auto& words = scope.program.wide_constants[node.a];
        const auto limbs = static_cast<std::uint32_t>(words.size());
        return from_words<Number>(words.data(), limbs, limbs * 64, true);
      }
    case Op::field:
      return read<Number>(scope.words, node.field);
    case Op::variable: {
      const auto bits = static_cast<std::uint32_t>(scope.words[node.field.word]);
      std::uint64_t words[max_field_words] = {};
      read_bits(reinterpret_cast<const std::uint8_t*>(scope.words + node.field.word + 1), 0, bits,
                words);
      return from_words<Number>(words, (bits + 63) / 64, bits, false);
    }
    case Op::parameter:
      return read<Number>(scope.data, node.field);
    case Op::stack_last: {
      const Stack& stack = scope.program.stacks[node.a];
      const std::uint64_t next = scope.words[stack.next];
      if (next == 0) {
        ++*scope.outside;
        return Number(0);
      }
      const Index header = stack.headers[(next - 1) * stack.width + node.value];
      const Index base = scope.program.headers[header].base;
      return read<Number>(scope.words + base, node.field);
    }
    case Op::access: {
      const Index header = header_of(scope, node.a);
      if (header == none) return Number(0);
      return read<Number>(scope.words + scope.program.headers[header].base, node.field);
    }
    case Op::register_cell: {
      const RegisterArray& array = scope.program.registers[node.a];
      const std::uint64_t index = word_of(scope, node.b) & 0xffffffff;
      if (index >= array.size) {
        ++*scope.outside;
        return Number(0);
      }
      return read<Number>(scope.registers[node.a].live.data() + index * array.cell.limbs,
                          array.cell);
    }
    case Op::lookahead: {
      if ((node.field.bits + node.value + 7) / 8 > scope.ahead_bytes) return Number(0);
      std::uint64_t words[64] = {};
      read_bits(scope.ahead, node.value, node.field.bits, words);
      Field field = node.field;
      field.word = 0;
      return read<Number>(words, field);
    }
    case Op::add:
      if constexpr (is_big<Number>)
        return left() + right();
      else
        return unwrapped(wrapped(left()) + wrapped(right()));
    case Op::subtract:
      if constexpr (is_big<Number>)
        return left() - right();
      else
        return unwrapped(wrapped(left()) - wrapped(right()));
    case Op::multiply:
      if constexpr (is_big<Number>)
        return left() * right();
      else
        return unwrapped(wrapped(left()) * wrapped(right()));
    case Op::divide:
    case Op::modulo: {
      const Number divisor = right();
      const Number dividend = left();
      // P4 defines neither; a division by -1 of fixed width could overflow.
      if (divisor <= 0) return Number(0);
      return node.op == Op::divide ? Number(dividend / divisor) : Number(dividend % divisor);
    }
    case Op::shift_left:
      return shifted_left<Number>(left(), amount_of(scope, node.b));
    case Op::shift_right:
      return shifted_right<Number>(left(), amount_of(scope, node.b));
    case Op::bit_and:
      return left() & right();
    case Op::bit_or:
      return left() | right();
    case Op::bit_xor:
      return left() ^ right();
    case Op::bit_not:
      if constexpr (is_big<Number>)
        return -right() - 1;
      else
        return unwrapped(~wrapped(right()));
    case Op::wrap_signed:
      return wrapped_signed<Number>(left(), node.value);
    case Op::saturate_signed: {
      const Number half = power<Number>(node.value - 1);
      return std::clamp<Number>(left(), -half, half - 1);
    }
    case Op::saturate_unsigned:
      return std::clamp<Number>(left(), 0, power<Number>(node.value) - 1);
    case Op::choose:
      return truth_of(scope, node.c) ? left() : right();
    case Op::bool_to_value:
      return Number(truth_of(scope, node.b) ? 1 : 0);
    case Op::last_index:
      return Number(unwrapped(scope.words[scope.program.stacks[node.a].next]) - 1);
    case Op::stack_size:
      return Number(unwrapped(scope.words[scope.program.stacks[node.a].next]));
    default:
      return Number(0);  // the loader excludes the other kinds, which are no values
  }
}

template <typename Number>
Number value_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    if (node.width == Width::word) [[likely]]
      return calculate<std::int64_t>(scope, node);
    if (node.width == Width::twice) {
      return static_cast<std::int64_t>(calculate<Twice>(scope, node));
    }
    const Big big = calculate<Big>(scope, node);
    const Big low = wrapped_signed<Big>(big, 64);
    return static_cast<std::int64_t>(low);
  } else if constexpr (std::is_same_v<Number, Twice>) {
    if (node.width == Width::word) return calculate<std::int64_t>(scope, node);
    if (node.width == Width::twice) return calculate<Twice>(scope, node);
    const Big low = wrapped_signed<Big>(calculate<Big>(scope, node), 128);
    return static_cast<Twice>(low);
  } else {
    if (node.width == Width::word) return Big(calculate<std::int64_t>(scope, node));
    if (node.width == Width::twice) return Big(calculate<Twice>(scope, node));
    return calculate<Big>(scope, node);
  }
}

template <typename Number>
bool compared(const Scope& scope, const Node& node) {
  const Number left = operand<Number>(scope, node.a);
  const Number right = operand<Number>(scope, node.b);
  switch (node.op) {
    case Op::is_equal:
      return left == right;
    case Op::is_different:
      return left != right;
    case Op::less:
      return left < right;
    case Op::less_or_equal:
      return left <= right;
    case Op::greater:
      return left > right;
    default:
      return left >= right;
  }
}

bool headers_are_equal(const Scope& scope, const Node& node) {
  const Index left = header_of(scope, node.a);
  const Index right = header_of(scope, node.b);
  if (left == none || right == none) return false;
  const Header& a = scope.program.headers[left];
  const Header& b = scope.program.headers[right];
  if (a.type != b.type) return false;
  const std::uint64_t* x = scope.words + a.base;
  const std::uint64_t* y = scope.words + b.base;
  if (x[valid_word] == 0 || y[valid_word] == 0) return false;
  for (const Field& field : scope.program.types[a.type].fields) {
    const std::uint64_t* p = x + field.word;
    const std::uint64_t* q = y + field.word;
    if (field.is_variable) {
      if (p[0] != q[0] || std::memcmp(p + 1, q + 1, p[0] / 8) != 0) return false;
    } else if (std::memcmp(p, q, 8 * field.limbs) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::uint64_t calculated_word(const Scope& scope, Index node) {
  return wrapped(value_of<std::int64_t>(scope, node));
}

void words_of(const Scope& scope, Index node, std::uint64_t* to, std::uint32_t limbs) {
  switch (scope.program.nodes[node].width) {
    case Width::word: {
      const auto value = value_of<std::int64_t>(scope, node);
      to[0] = wrapped(value);
      std::fill(to + 1, to + limbs, value < 0 ? ~0ULL : 0);
      return;
    }
    case Width::twice: {
      const auto value = value_of<Twice>(scope, node);
      to[0] = static_cast<std::uint64_t>(value);
      if (limbs > 1) to[1] = static_cast<std::uint64_t>(value >> 64);
      for (std::uint32_t i = 2; i < limbs; ++i) to[i] = value < 0 ? ~0ULL : 0;
      return;
    }
    case Width::any: {
      Big value = value_of<Big>(scope, node);
      if (value < 0) {
        const Big modulus = Big(1) << (64 * limbs);
        value %= modulus;
        if (value < 0) value += modulus;
      }
      for (std::uint32_t i = 0; i < limbs; ++i) {
        to[i] = static_cast<std::uint64_t>(value & ~0ULL);
        value >>= 64;
      }
      return;
    }
  }
}

bool calculated_truth(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  switch (node.op) {
    case Op::truth:
      return node.value != 0;
    case Op::is_equal:
    case Op::is_different:
    case Op::less:
    case Op::less_or_equal:
    case Op::greater:
    case Op::greater_or_equal:
      if (node.compare == Width::word) [[likely]]
        return compared<std::int64_t>(scope, node);
      return node.compare == Width::twice ? compared<Twice>(scope, node)
                                          : compared<Big>(scope, node);
    case Op::bool_equal:
      return truth_of(scope, node.a) == truth_of(scope, node.b);
    case Op::bool_different:
      return truth_of(scope, node.a) != truth_of(scope, node.b);
    case Op::both:
      return truth_of(scope, node.a) && truth_of(scope, node.b);
    case Op::either:
      return truth_of(scope, node.a) || truth_of(scope, node.b);
    case Op::negate:
      return !truth_of(scope, node.b);
    case Op::choose:
      return truth_of(scope, node.c) ? truth_of(scope, node.a) : truth_of(scope, node.b);
    case Op::value_to_bool:
      if (node.compare == Width::word) [[likely]]
        return word_of(scope, node.b) != 0;
      if (node.compare == Width::twice) return value_of<Twice>(scope, node.b) != 0;
      return value_of<Big>(scope, node.b) != 0;
    case Op::headers_equal:
      return headers_are_equal(scope, node);
    case Op::headers_different:
      return !headers_are_equal(scope, node);
    case Op::is_valid: {
      const Index header = header_of(scope, node.b);
      return header != none && scope.words[scope.program.headers[header].base + valid_word] != 0;
    }
    case Op::union_valid: {
      const auto& members = scope.program.unions[node.a].headers;
      return std::any_of(members.begin(), members.end(), [&](Index header) {
        return scope.words[scope.program.headers[header].base + valid_word] != 0;
      });
    }
    default:
      return false;
  }
}

Index header_of(const Scope& scope, Index index) {
  const Node& node = scope.program.nodes[index];
  if (node.op == Op::header) return node.a;
  if (node.op == Op::choose) {
    return truth_of(scope, node.c) ? header_of(scope, node.a) : header_of(scope, node.b);
  }
  const Stack& stack = scope.program.stacks[node.a];
  const std::uint64_t element = word_of(scope, node.b);
  if (element < stack.headers.size()) return stack.headers[element];
  ++*scope.outside;
  return none;
}

std::string text_of(const Scope& scope, Index node) { return value_of<Big>(scope, node).str(); }

void read_bits(const std::uint8_t* bytes, std::size_t at, std::uint32_t bits, std::uint64_t* to) {
  bytes += at / 8;
  const auto skip = static_cast<std::uint32_t>(at % 8);
  // From the end: the lowest word first.
  const std::uint32_t end = skip + bits;
  for (std::uint32_t i = 0; i * 64 < bits; ++i) {
    const std::uint32_t take = std::min(64U, bits - i * 64);
    const std::uint32_t last = end - i * 64;  // one past the word's lowest bit
    const std::uint32_t first = last - take;  // the word's highest bit
    std::uint64_t value = 0;
    unsigned __int128 window = 0;
    for (std::uint32_t byte = first / 8; byte < (last + 7) / 8; ++byte) {
      window = window << 8 | bytes[byte];
    }
    const std::uint32_t unused = (8 - last % 8) % 8;
    value = static_cast<std::uint64_t>(window >> unused);
    to[i] = take == 64 ? value : value & ((1ULL << take) - 1);
  }
}

std::vector<std::uint8_t> bytes_of_words(const std::uint64_t* words, std::uint32_t bits) {
  std::vector<std::uint8_t> bytes((bits + 7) / 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t position = bytes.size() - 1 - i;
    bytes[i] = static_cast<std::uint8_t>(words[position / 8] >> (8 * (position % 8)));
  }
  return bytes;
}

std::vector<std::uint64_t> words_of_bytes(const std::vector<std::uint8_t>& bytes,
                                          std::uint32_t bits) {
  std::vector<std::uint64_t> words((bits + 63) / 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    const std::size_t position = bytes.size() - 1 - i;
    const std::size_t top = 8 * position + static_cast<std::size_t>(std::bit_width(bytes[i]));
    if (top > bits) return {};
    words[position / 8] |= std::uint64_t{bytes[i]} << (8 * (position % 8));
  }
  return words;
}

}  // namespace nagi::p4
