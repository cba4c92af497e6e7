// SPDX-License-Identifier: Apache-2.0
//
// The hash algorithms that v1model knows, as bmv2 computes them. What they are applied to is a
// string of bits, padded with zeros to whole bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nagi::p4 {

using HashFunction = std::uint64_t (*)(const std::uint8_t* bytes, std::size_t length);

/// By the name in the compiler's JSON: csum16, crc16, crc32, crc16_custom, crc32_custom, xor16,
/// identity, ... Nothing: there is none of that name.
HashFunction hash_function(const std::string& name);

/// The internet checksum (RFC 1071).
std::uint64_t internet_checksum(const std::uint8_t* bytes, std::size_t length);

}  // namespace nagi::p4
