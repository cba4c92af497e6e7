// SPDX-License-Identifier: Apache-2.0
//
// The hash algorithms of v1model, as bmv2 computes them. The input is a string of bits, padded with
// zeros to whole bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nagi::p4 {

using HashFunction = std::uint64_t (*)(const std::uint8_t* bytes, std::size_t length);

/// Return the hash function that the compiler's JSON calls `name`: csum16, crc16, crc32,
/// crc16_custom, crc32_custom, xor16, identity, ... Return null for unknown names.
HashFunction hash_function(const std::string& name);

/// Return the internet checksum (RFC 1071).
std::uint64_t internet_checksum(const std::uint8_t* bytes, std::size_t length);

}  // namespace nagi::p4
