// SPDX-License-Identifier: Apache-2.0
//
// Converts fields to bytes, for hashes and checksums, and for the frame to send. A header is not
// written if it was not changed and is already at the right position in the frame.
#include <algorithm>
#include <cstring>

#include "program/state.hpp"

namespace nagi::p4 {

namespace {

void put_header(BitWriter& to, const HeaderType& type, const std::uint64_t* words) {
  for (const Field& field : type.fields) {
    if (field.is_variable) {
      to.put_bytes(reinterpret_cast<const std::uint8_t*>(words + field.word + 1),
                   words[field.word] / 8);
    } else {
      to.put(words + field.word, field);
    }
  }
}

/// Write a header whose fields all have a fixed length.
void write_header(const HeaderType& type, const std::uint64_t* words, std::uint8_t* to) {
  for (const Chunk& chunk : type.chunks) {
    const std::uint64_t value = big_endian(chunk.value(words));
    if (chunk.bytes == 8) [[likely]] {
      std::memcpy(to, &value, 8);
    } else {
      std::memcpy(to, &value, chunk.bytes);
    }
    to += chunk.bytes;
  }
}

}  // namespace

std::size_t State::bytes_of(const std::uint64_t* words, Index index) const {
  const Header& header = program->headers[index];
  const HeaderType& type = program->types[header.type];
  if (type.variable == none) [[likely]]
    return type.bits / 8;
  return (type.bits + words[header.base + type.fields[type.variable].word]) / 8;
}

namespace {

std::uint64_t checksum_of(const Calculation& calculation, const std::uint64_t* words) {
  std::uint64_t sum = calculation.sum_of_constants;
  for (const SumRun& run : calculation.sum) {
    if (words[run.valid] == 0) continue;
    if (run.variable != none) {
      const std::uint64_t* at = words + run.variable;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(at + 1);
      sum += internet_checksum(bytes, at[0] / 8) ^ 0xffff;
      continue;
    }
    // 2^16, and therefore 2^32, equals 1 in these sums (RFC 1071).
    for (const SumPart& part : run.narrow) sum += words[part.word] << part.shift;
    for (const SumPart& part : run.wide) {
      const std::uint64_t value = words[part.word];
      sum += ((value & 0xffffffff) + (value >> 32)) << part.shift;
    }
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum ^ 0xffff;
}

}  // namespace

std::uint64_t State::calculate(const Calculation& calculation, const Packet& packet) {
  const std::uint64_t* words = packet.words_.get();
  if (!calculation.sum.empty()) return checksum_of(calculation, words);
  BitWriter to(scratch_.data());
  const std::uint8_t* payload = nullptr;
  std::size_t payload_bytes = 0;
  for (const CalculationInput& input : calculation.inputs) {
    switch (input.kind) {
      case CalculationInput::Kind::constant:
        to.put(input.value.data(), input.field);
        break;
      case CalculationInput::Kind::field:
        if (words[program->headers[input.header].base + valid_word] == 0) break;
        if (input.field.is_variable) {
          to.put_bytes(reinterpret_cast<const std::uint8_t*>(words + input.field.word + 1),
                       words[input.field.word] / 8);
        } else {
          to.put(words + input.field.word, input.field);
        }
        break;
      case CalculationInput::Kind::header: {
        const Header& header = program->headers[input.header];
        if (words[header.base + valid_word] == 0) break;
        put_header(to, program->types[header.type], words + header.base);
        break;
      }
      case CalculationInput::Kind::payload:
        payload = frames.data(packet.frame_.slot) + packet.frame_.offset + packet.parsed_;
        payload_bytes =
            std::min<std::size_t>(packet.frame_.length - packet.parsed_, packet.truncated_);
        break;
    }
  }
  std::size_t length = to.finish();
  if (payload != nullptr) {
    std::memcpy(scratch_.data() + length, payload, payload_bytes);
    length += payload_bytes;
  }
  return calculation.function(scratch_.data(), length);
}

bool State::verify_checksums(const Packet& packet) {
  bool good = true;
  for (const Checksum& checksum : program->checksums) {
    if (!checksum.verify) continue;
    std::uint64_t* words = packet.words_.get();
    if (words[program->headers[checksum.header].base + valid_word] == 0) continue;
    if (checksum.condition != none && !truth_of(scope_of(words, nullptr), checksum.condition)) {
      continue;
    }
    const std::uint64_t computed = calculate(program->calculations[checksum.calculation], packet);
    if (computed != words[checksum.target.word]) good = false;
  }
  return good;
}

void State::update_checksums(Packet& packet) {
  for (const Checksum& checksum : program->checksums) {
    if (!checksum.update) continue;
    std::uint64_t* words = packet.words_.get();
    if (checksum.condition != none && !truth_of(scope_of(words, nullptr), checksum.condition)) {
      continue;
    }
    const std::uint64_t value =
        calculate(program->calculations[checksum.calculation], packet) & checksum.target.mask();
    if (value == words[checksum.target.word]) continue;
    words[checksum.target.word] = value;
    words[checksum.target.written] = 1;
  }
}

std::size_t State::size_of(const Packet& packet) const {
  const std::uint64_t* words = packet.words_.get();
  std::size_t bytes = packet.frame_.length - packet.parsed_;
  for (const EmittedHeader& header : program->deparser) {
    if (header.is_valid(words)) bytes += header.size(words);
  }
  return std::min<std::size_t>(bytes, packet.truncated_);
}

bool State::deparse(Packet& packet) {
  update_checksums(packet);
  if (program->deparser_action != none) run_action(program->deparser_action, nullptr, packet);
  const std::uint64_t* words = packet.words_.get();
  std::size_t front = 0;
  for (const EmittedHeader& header : program->deparser) {
    if (header.is_valid(words)) front += header.size(words);
  }
  io::Frame& frame = packet.frame_;
  const std::size_t payload = frame.length - packet.parsed_;
  std::size_t shift = 0;  // bytes by which the start of the frame moved towards the payload
  if (front <= packet.parsed_) {
    shift = packet.parsed_ - front;
    frame.offset = static_cast<std::uint16_t>(frame.offset + shift);
  } else {
    // Headers cannot grow to the front, because the front of the slot is for the kernel. So move
    // the payload back.
    const std::size_t room = frames.is_registered(frame.slot) ? io::FramePool::registered_slot_bytes
                                                              : frames.slot_bytes();
    const std::size_t length = front + payload;
    std::uint8_t* from = frames.data(frame.slot) + frame.offset + packet.parsed_;
    if (frame.offset + length <= room) {
      std::memmove(from + (front - packet.parsed_), from, payload);
    } else if (length <= frames.slot_bytes()) {
      const io::Slot slot = frames.take();
      std::uint8_t* to = frames.data(slot);
      // frames.take() may have moved the memory of the pool's slots
      from = frames.data(frame.slot) + frame.offset;
      std::memcpy(to, from, packet.parsed_);
      std::memcpy(to + front, from + packet.parsed_, payload);
      frames.give_back(frame.slot);
      frame.slot = slot;
      frame.offset = 0;
    } else {
      return false;
    }
  }
  frame.length = static_cast<std::uint32_t>(front + payload);
  packet.parsed_ = static_cast<std::uint32_t>(front);
  std::uint8_t* start = frames.data(frame.slot) + frame.offset;
  std::size_t at = 0;
  for (const EmittedHeader& header : program->deparser) {
    if (!header.is_valid(words)) continue;
    const std::uint64_t* block = words + header.base;
    if (block[written_word] != 0 || block[origin_word] != at + shift + 1) {
      const HeaderType& type = program->types[program->headers[header.header].type];
      if (!type.chunks.empty()) {
        write_header(type, block, start + at);
      } else {
        BitWriter to(start + at);
        put_header(to, type, block);
        to.finish();
      }
    }
    at += header.size(words);
  }
  return true;
}

}  // namespace nagi::p4
