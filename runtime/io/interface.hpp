// SPDX-License-Identifier: Apache-2.0
//
// Properties of network interfaces that packet I/O needs. All functions throw std::system_error.
#pragma once

#include <cstddef>
#include <string>

namespace nagi::io {

/// Return the kernel's number of an interface.
int index_of(const std::string& interface);

/// Return the length of the longest frame, with one VLAN tag and without FCS.
std::size_t longest_frame(const std::string& interface);

/// Return the name of the driver ("veth", "e1000e", ...), or an empty text if it is unknown.
std::string driver_of(const std::string& interface);

/// Return the number of receive queues.
unsigned receive_queues(const std::string& interface);

/// Enable promiscuous mode while `packet_socket` is open.
void make_promiscuous(int packet_socket, int interface_index);

}  // namespace nagi::io
