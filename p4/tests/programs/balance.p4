// SPDX-License-Identifier: Apache-2.0
//
// Equal-cost paths: an action selector whose hash is over the flow, an action profile shared by
// two tables, hashes into a range.
#include "wire.p4"

struct Headers {
    Ethernet ethernet;
    Ipv4 ipv4;
    Udp udp;
}

struct Metadata {
    bit<16> path;
    bit<32> spread;
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
        transition select(headers.ipv4.protocol) {
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(headers.udp);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action_selector(HashAlgorithm.crc16, 64, 14) paths;
    action_profile(16) marks;

    action drop() {
        mark_to_drop(standard);
    }
    action take(Port port, bit<16> path) {
        standard.egress_spec = port;
        metadata.path = path;
    }
    action mark(bit<8> tos) {
        headers.ipv4.tos = tos;
    }

    table routes {
        key = {
            headers.ipv4.destination: lpm;
            headers.ipv4.source: selector;
            headers.ipv4.destination: selector;
            headers.ipv4.protocol: selector;
            headers.udp.source: selector;
            headers.udp.destination: selector;
        }
        actions = { take; drop; }
        implementation = paths;
    }
    table marks_by_port {
        key = { headers.udp.destination: exact; }
        actions = { mark; NoAction; }
        implementation = marks;
    }
    table marks_by_source {
        key = { headers.ipv4.source: ternary; }
        actions = { mark; NoAction; }
        implementation = marks;
    }

    apply {
        if (!headers.ipv4.isValid()) {
            drop();
            return;
        }
        standard.egress_spec = 4;
        if (!marks_by_port.apply().hit) {
            marks_by_source.apply();
        }
        routes.apply();
        if (headers.udp.isValid()) {
            hash(metadata.spread, HashAlgorithm.crc32, 32w100,
                 { headers.ipv4.source, headers.ipv4.destination, headers.udp.source }, 32w1000);
        }
        headers.ethernet.source[47:32] = metadata.path;
        headers.ethernet.source[31:0] = metadata.spread;
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
