// SPDX-License-Identifier: Apache-2.0
//
// Meters (RFC 2698): an array of them by packets, one with each table entry by bytes. What they
// say goes out with the packet.
#include "wire.p4"

header Colors {
    bit<8> packets;
    bit<8> bytes;
    bit<8> outside;
}

struct Headers {
    Ethernet ethernet;
    Colors colors;
    Ipv4 ipv4;
}

struct Metadata {
    bit<2> packets;
    bit<8> bytes;
    bit<8> outside;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    meter<bit<8>>(16, MeterType.packets) by_class;
    direct_meter<bit<8>>(MeterType.bytes) by_destination;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(Port port) {
        standard.egress_spec = port;
        by_destination.read(metadata.bytes);
    }
    table routes {
        key = { headers.ipv4.destination: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        meters = by_destination;
    }

    apply {
        metadata.bytes = 0x55;
        metadata.outside = 0x66;
        if (routes.apply().hit) {
            by_class.execute_meter(headers.ipv4.tos & 0xf, metadata.packets);
            by_class.execute_meter(200, metadata.outside);  // no such meter: nothing happens
            headers.colors.setValid();
            headers.colors.packets = (bit<8>)metadata.packets;
            headers.colors.bytes = metadata.bytes;
            headers.colors.outside = metadata.outside;
            if (metadata.packets == V1MODEL_METER_COLOR_RED && headers.ipv4.tos[7:7] == 1) {
                drop();
            }
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
