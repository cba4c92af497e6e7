// SPDX-License-Identifier: Apache-2.0
//
// Longest prefix matches over 32 and 128 bits, alone and beside exact keys; a prefix of length 0;
// what a table hit, and which action ran, decide what is next.
#include "wire.p4"

struct Headers {
    Ethernet ethernet;
    Ipv4 ipv4;
    Ipv6 ipv6;
}

struct Metadata {
    bit<16> network;  // virtual network
    bit<16> next_hop;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action set_network(bit<16> network) {
        metadata.network = network;
    }
    action route(bit<16> next_hop) {
        metadata.next_hop = next_hop;
    }
    action local() {
        metadata.next_hop = 0;
        standard.egress_spec = standard.ingress_port;
        headers.ethernet.destination = headers.ethernet.source;
    }
    action rewrite(bit<48> source, bit<48> destination, Port port) {
        headers.ethernet.source = source;
        headers.ethernet.destination = destination;
        standard.egress_spec = port;
    }

    table networks {
        key = { standard.ingress_port: exact; }
        actions = { set_network; }
        default_action = set_network(1);
    }
    table routes_v4 {
        key = {
            metadata.network: exact;
            headers.ipv4.destination: lpm;
        }
        actions = { route; local; drop; }
        default_action = drop();
    }
    table routes_v6 {
        key = { headers.ipv6.destination: lpm; }
        actions = { route; local; drop; NoAction; }
        default_action = NoAction();
    }
    table next_hops {
        key = { metadata.next_hop: exact; }
        actions = { rewrite; drop; }
        const default_action = drop();
    }

    apply {
        networks.apply();
        if (headers.ipv4.isValid()) {
            switch (routes_v4.apply().action_run) {
                route: { headers.ipv4.ttl = headers.ipv4.ttl - 1; }
                local: { headers.ipv4.ttl = 255; }
                default: { exit; }
            }
        } else if (headers.ipv6.isValid()) {
            if (!routes_v6.apply().hit) {
                standard.egress_spec = 4;
                headers.ethernet.source = 0xbad;
                return;
            }
            headers.ipv6.hop_limit = headers.ipv6.hop_limit - 1;
        } else {
            drop();
        }
        if (metadata.next_hop != 0) {
            if (next_hops.apply().miss) {
                standard.egress_spec = 3;
            }
        }
        // not reached by those that have left
        headers.ethernet.ethertype = headers.ethernet.ethertype ^ 0x1;
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl == 0) {
            mark_to_drop(standard);
        }
    }
}

control updating(inout Headers headers, inout Metadata metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(),
                        { headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.tos,
                          headers.ipv4.total_length, headers.ipv4.identification,
                          headers.ipv4.flags, headers.ipv4.fragment_offset, headers.ipv4.ttl,
                          headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination },
                        headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.ipv6);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
