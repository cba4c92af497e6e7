// SPDX-License-Identifier: Apache-2.0
//
// Meters (RFC 2698): an array of packets and one of bytes, and one with each entry of a table. The
// colors go out with the packet.
#include "frame.p4"

header Probe {
    bit<8> cell;
    bit<8> packets;  // colors: 0 green, 1 yellow, 2 red
    bit<8> bytes;
    bit<8> entry;
}

struct Headers {
    Probe probe;
}

struct Metadata {
    bit<2> entry;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.probe);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    meter<bit<8>>(4, MeterType.packets) by_packets;
    meter<bit<8>>(4, MeterType.bytes) by_bytes;
    direct_meter<bit<2>>(MeterType.packets) by_entry;

    action metered() {
        by_entry.read(metadata.entry);
    }
    table cells {
        key = { headers.probe.cell: exact; }
        actions = { metered; NoAction; }
        default_action = NoAction();
        meters = by_entry;
    }
    apply {
        standard.egress_spec = 1;
        metadata.entry = 3;  // what no meter says
        by_packets.execute_meter(headers.probe.cell, headers.probe.packets);
        by_bytes.execute_meter(headers.probe.cell, headers.probe.bytes);
        cells.apply();
        headers.probe.entry = (bit<8>)metadata.entry;
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
