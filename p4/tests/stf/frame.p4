// SPDX-License-Identifier: Apache-2.0
//
// What the programs of these tests share: the parts of a pipeline that most of them leave empty.
#ifndef FRAME_P4
#define FRAME_P4

#include "../programs/wire.p4"

// Controls that do nothing, of a program whose structs are Headers and Metadata.
#define NO_CHECKSUMS \
control checking(inout Headers headers, inout Metadata metadata) { apply { } } \
control updating(inout Headers headers, inout Metadata metadata) { apply { } }

#define NO_EGRESS \
control egress(inout Headers headers, inout Metadata metadata, \
               inout standard_metadata_t standard) { apply { } }

#define EMIT_ALL \
control deparsing(packet_out packet, in Headers headers) { apply { packet.emit(headers); } }

#define SWITCH \
V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;

#endif
