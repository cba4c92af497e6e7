// SPDX-License-Identifier: Apache-2.0
//
// An access list: ternary, range and optional matches with priorities, direct counters, constant
// entries, validity as a key, nested conditions.
#include "wire.p4"

header Verdict {
    bit<8> rule;
    bit<8> band;
    bit<8> owner;
    bit<8> kind;
}

struct Headers {
    Ethernet ethernet;
    Verdict verdict;
    Ipv4 ipv4;
    Ipv6 ipv6;
    Tcp tcp;
    Udp udp;
}

struct Metadata {
    bit<16> source_port;
    bit<16> destination_port;
    bit<8> rule;
    bit<8> band;
    bit<8> owner;
    bit<8> kind;
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
        transition select(headers.ipv4.protocol, headers.ipv4.fragment_offset) {
            (PROTOCOL_TCP, 0): parse_tcp;
            (PROTOCOL_UDP, 0): parse_udp;
            (_, 1 .. 0x1fff): accept;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        transition select(headers.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(headers.tcp);
        metadata.source_port = headers.tcp.source;
        metadata.destination_port = headers.tcp.destination;
        transition accept;
    }
    state parse_udp {
        packet.extract(headers.udp);
        metadata.source_port = headers.udp.source;
        metadata.destination_port = headers.udp.destination;
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;

    action allow(bit<8> rule) {
        metadata.rule = rule;
        hits.count();
    }
    action deny(bit<8> rule) {
        metadata.rule = rule | 0x80;
        hits.count();
    }
    action set_band(bit<8> band) {
        metadata.band = band;
    }
    action set_owner(bit<8> owner) {
        metadata.owner = owner;
    }
    action set_kind(bit<8> kind) {
        metadata.kind = kind;
    }

    table rules {
        key = {
            headers.ipv4.source: ternary;
            headers.ipv4.destination: ternary;
            headers.ipv4.protocol: ternary;
            headers.ipv4.isValid(): ternary;
            standard.ingress_port: ternary;
            metadata.destination_port & 0xff00: ternary @name("service");
        }
        actions = { allow; deny; }
        const default_action = deny(127);
        counters = hits;
    }

    table bands {
        key = {
            metadata.source_port: range;
            headers.ipv4.total_length: range;
            headers.ipv4.destination: lpm;
            headers.ipv4.tos: exact;
        }
        actions = { set_band; NoAction; }
        default_action = NoAction();
    }

    table owners {
        key = {
            headers.ipv6.source: optional;
            headers.ipv6.next_header: optional;
            metadata.destination_port: optional;
        }
        actions = { set_owner; NoAction; }
        default_action = set_owner(0xee);
    }

    table kinds {
        key = {
            headers.tcp.isValid(): exact;
            headers.udp.isValid(): exact;
            headers.tcp.flags: ternary;
        }
        actions = { set_kind; }
        const default_action = set_kind(0);
        const entries = {
            (true, false, 0x02 &&& 0x12): set_kind(1);  // SYN
            (true, false, 0x12 &&& 0x12): set_kind(2);  // SYN, ACK
            (true, false, 0x04 &&& 0x04): set_kind(3);  // RST
            (true, false, _): set_kind(4);
            (false, true, _): set_kind(5);
        }
    }

    apply {
        rules.apply();
        kinds.apply();
        if (headers.ipv4.isValid()) {
            if (headers.ipv4.ttl > 1 && (metadata.kind != 3 || headers.ipv4.identification == 0)) {
                bands.apply();
            } else if (headers.ipv4.ttl == 0 || metadata.kind == 3) {
                metadata.band = 0xff;
            } else {
                metadata.band = 0xfe;
            }
        } else if (headers.ipv6.isValid()) {
            owners.apply();
        }
        headers.verdict.setValid();
        headers.verdict.rule = metadata.rule;
        headers.verdict.band = metadata.band;
        headers.verdict.owner = metadata.owner;
        headers.verdict.kind = metadata.kind;
        standard.egress_spec = (Port)(metadata.rule & 0x3) + 1;
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
        packet.emit(headers.ethernet);
        packet.emit(headers.verdict);
        packet.emit(headers.ipv4);
        packet.emit(headers.ipv6);
        packet.emit(headers.tcp);
        packet.emit(headers.udp);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
