// SPDX-License-Identifier: Apache-2.0
//
// Quantities on the command line: `5 MB`, `40ms`, `1 Mb/s`. Prefixes are decimal, those with an i
// binary (1 KiB = 1024 bytes). A bare number counts the base unit.
#pragma once

#include <cstdint>
#include <string>

namespace nagi::applications {

/// In bytes; B, kB, KB, MB, GB, KiB, MiB, GiB. Throws InputError if it is none, or not whole.
std::uint64_t parse_bytes(const std::string& text);

/// In nanoseconds; ns, us, ms, s, min.
std::uint64_t parse_duration(const std::string& text);

/// In bit/s; b/s, kb/s, Mb/s, Gb/s.
std::uint64_t parse_rate(const std::string& text);

}  // namespace nagi::applications
