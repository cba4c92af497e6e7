// SPDX-License-Identifier: Apache-2.0
//
// The offloads of an interface that disturb per-packet emulation: those that merge segments into
// larger ones, or leave checksums to hardware. See ethtool(8).
#pragma once

#include <string>
#include <vector>

namespace nagi::io {

/// Return the names, as in ethtool -k, of the harmful offloads that are on. Throws
/// std::system_error.
std::vector<std::string> offloads_on(const std::string& interface);

/// Switch a harmful offload, named as above, on or off. Needs CAP_NET_ADMIN. Throws
/// std::system_error.
void set_offload(const std::string& interface, const std::string& offload, bool on);

}  // namespace nagi::io
