// SPDX-License-Identifier: Apache-2.0
//
// What every kind of packet I/O needs to know of a network interface. All throw std::system_error.
#pragma once

#include <cstddef>
#include <string>

namespace nagi::io {

/// The kernel's number of an interface.
int index_of(const std::string& interface);

/// The longest frame it can carry, without FCS, with one VLAN tag.
std::size_t longest_frame(const std::string& interface);

/// The name of its driver ("veth", "e1000e", ...); empty if it does not tell.
std::string driver_of(const std::string& interface);

/// How many queues frames come in by.
unsigned receive_queues(const std::string& interface);

/// Has the interface take in frames for everybody for as long as `packet_socket` is open.
void make_promiscuous(int packet_socket, int interface_index);

}  // namespace nagi::io
