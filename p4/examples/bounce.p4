// SPDX-License-Identifier: Apache-2.0
//
// A minimal program as a start for your own: a frame leaves by the port of its arrival, with its
// addresses swapped, unless a table names another output port. Frames are counted.
#include <core.p4>
#define V1MODEL_VERSION 20200408  // indices of any width
#include <v1model.p4>

typedef bit<9> Port;

header Ethernet {
    bit<48> destination;
    bit<48> source;
    bit<16> ethertype;
}

struct Headers {
    Ethernet ethernet;
}

struct Metadata { }

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
    counter<Port>(512, CounterType.packets_and_bytes) frames;  // by port of arrival

    action bounce() {
        standard.egress_spec = standard.ingress_port;
        bit<48> destination = headers.ethernet.destination;
        headers.ethernet.destination = headers.ethernet.source;
        headers.ethernet.source = destination;
    }
    action forward(Port port) {
        standard.egress_spec = port;
    }
    table destinations {
        key = { headers.ethernet.destination: exact; }
        actions = { bounce; forward; }
        default_action = bounce();
    }
    apply {
        frames.count(standard.ingress_port);
        if (headers.ethernet.isValid()) {
            destinations.apply();
        } else {
            mark_to_drop(standard);
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply { }
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
