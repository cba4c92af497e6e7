// SPDX-License-Identifier: Apache-2.0
//
// Multicast with a replication id, digests of what was learned, packets cut short.
#include "wire.p4"

const bit<32> REPLICA = 5;

header Copy {
    bit<16> rid;
    bit<8> instance;
    bit<8> port;
}

struct Headers {
    Ethernet ethernet;
    Copy copy;
}

struct Learned {
    bit<48> source;
    bit<9> port;
    bit<1> known;
}

struct Cut {
    bit<16> length;
    bit<32> what;
}

struct Metadata {
    Learned learned;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action flood(bit<16> group) {
        standard.mcast_grp = group;
    }
    action send(Port port) {
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    action cut(bit<32> length, Port port) {
        truncate(length);
        standard.egress_spec = port;
    }
    action flood_and_drop(bit<16> group) {
        standard.mcast_grp = group;
        standard.egress_spec = 511;  // the group counts all the same
    }
    table sources {
        key = { headers.ethernet.source: exact; }
        actions = { NoAction; }
        default_action = NoAction();
    }
    table destinations {
        key = { headers.ethernet.destination: ternary; }
        actions = { flood; send; drop; cut; flood_and_drop; }
        default_action = flood(1);
    }
    apply {
        if (!headers.ethernet.isValid()) {
            drop();
            return;
        }
        metadata.learned = { headers.ethernet.source, standard.ingress_port, 0 };
        if (sources.apply().miss) {
            digest<Learned>(1, metadata.learned);
        }
        destinations.apply();
        if (headers.ethernet.ethertype == 0x4444) {
            // of two digests the last one is sent
            digest<Cut>(2, { headers.ethernet.ethertype, standard.packet_length });
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        // no copy back to where it came from
        if (standard.egress_port == standard.ingress_port && standard.egress_rid != 9) {
            mark_to_drop(standard);
        } else if (standard.instance_type == REPLICA) {
            headers.copy.setValid();
            headers.copy.rid = standard.egress_rid;
            headers.copy.instance = (bit<8>)standard.instance_type;
            headers.copy.port = (bit<8>)standard.egress_port;
            if (standard.egress_rid == 3) {
                truncate(20);
            }
        }
    }
}

control updating(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
