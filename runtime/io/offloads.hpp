// SPDX-License-Identifier: Apache-2.0
//
// The offloads of an interface that spoil per-packet emulation: whatever merges segments into
// larger ones, or leaves checksums to hardware. See ethtool(8).
#pragma once

#include <string>
#include <vector>

namespace nagi::io {

/// The names (as ethtool -k has them) of the harmful offloads that are on. Throws
/// std::system_error.
std::vector<std::string> offloads_on(const std::string& interface);

/// Switches one of them on or off. Needs CAP_NET_ADMIN. Throws std::system_error.
void set_offload(const std::string& interface, const std::string& offload, bool on);

}  // namespace nagi::io
