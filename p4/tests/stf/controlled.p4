// SPDX-License-Identifier: Apache-2.0
//
// A controller at the CPU port: packets go to it with a header that says where from and why, and
// come from it with one that says where to. It also gets clones.
#include "frame.p4"

const Port CPU_PORT = 255;
const bit<32> TO_CONTROLLER = 7;  // mirror session

@controller_header("packet_in")
header PacketIn {
    bit<9> ingress_port;
    bit<7> reason;  // 1: no entry; 2: a clone
}

@controller_header("packet_out")
header PacketOut {
    bit<9> egress_port;
    bit<7> padding;
}

struct Headers {
    PacketIn packet_in_header;
    PacketOut packet_out_header;
    Ethernet ethernet;
}

struct Metadata {
    @field_list(1)
    Port came_by;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: from_network;
        }
    }
    state from_controller {
        packet.extract(headers.packet_out_header);
        transition from_network;
    }
    state from_network {
        packet.extract(headers.ethernet);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action send(Port port) {
        standard.egress_spec = port;
    }
    action send_and_copy(Port port) {
        standard.egress_spec = port;
        metadata.came_by = standard.ingress_port;
        clone_preserving_field_list(CloneType.I2E, TO_CONTROLLER, 1);
    }
    action ask() {
        standard.egress_spec = CPU_PORT;
        headers.packet_in_header.setValid();
        headers.packet_in_header.ingress_port = standard.ingress_port;
        headers.packet_in_header.reason = 1;
    }
    table destinations {
        key = { headers.ethernet.destination: exact; }
        actions = { send; send_and_copy; ask; }
        default_action = ask();
    }
    apply {
        if (headers.packet_out_header.isValid()) {
            standard.egress_spec = headers.packet_out_header.egress_port;
            headers.packet_out_header.setInvalid();
        } else {
            destinations.apply();
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 1) {
            headers.packet_in_header.setValid();
            headers.packet_in_header.ingress_port = metadata.came_by;
            headers.packet_in_header.reason = 2;
        }
    }
}

NO_CHECKSUMS
EMIT_ALL
SWITCH
