// SPDX-License-Identifier: Apache-2.0
//
// Quantities on the command line: `5 MB`, `40ms`, `1 Mb/s`. Prefixes are decimal; prefixes with an
// i are binary (1 KiB = 1024 bytes). A number without a unit is in the unit of the result.
#pragma once

#include <cstdint>
#include <string>

namespace nagi::applications {

/// Return a size in bytes. Units are B, kB, KB, MB, GB, KiB, MiB, GiB. All functions throw
/// InputError if the text is no such quantity, or no whole number of bytes, ns or bit/s.
std::uint64_t parse_bytes(const std::string& text);

/// Return a time in nanoseconds. Units are ns, us, ms, s, min.
std::uint64_t parse_duration(const std::string& text);

/// Return a rate in bit/s. Units are b/s, kb/s, Mb/s, Gb/s.
std::uint64_t parse_rate(const std::string& text);

}  // namespace nagi::applications
