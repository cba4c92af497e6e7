// SPDX-License-Identifier: Apache-2.0
//
// Headers of varying length: IPv4 options as varbit, TCP options one by one by lookahead and
// advance; the packet's own bytes looked at before they are extracted.
#include "wire.p4"

header Options {
    varbit<320> data;
}

header TcpMss { bit<8> kind; bit<8> length; bit<16> mss; }
header TcpScale { bit<8> kind; bit<8> length; bit<8> shift; }

header Report {
    bit<16> mss;
    bit<8> scale;
    bit<8> options;   // how many
    bit<8> others;    // bytes of them
    bit<8> first;     // byte of the payload, not extracted
    bit<16> ahead;    // two bytes behind it
}

struct KindAndLength { bit<8> kind; bit<8> length; }

struct Headers {
    Ethernet ethernet;
    Report report;
    Ipv4 ipv4;
    Options ipv4_options;
    Tcp tcp;
    TcpMss mss;
    TcpScale scale;
    Options tcp_options;
    Udp udp;
}

struct Metadata {
    bit<16> left;  // bytes of TCP options
    bit<16> mss;
    bit<8> scale;
    bit<8> options;
    bit<8> others;
    bit<8> first;
    bit<16> ahead;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype, packet.lookahead<bit<4>>()) {
            (ETHERTYPE_IPV4, 4): parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.ihl) {
            0 &&& 0xc: too_short;
            4: too_short;
            5: parse_payload;
            default: parse_ipv4_options;
        }
    }
    state too_short {
        verify(false, error.HeaderTooShort);
        transition accept;
    }
    state parse_ipv4_options {
        packet.extract(headers.ipv4_options, ((bit<32>)headers.ipv4.ihl - 5) * 32);
        transition parse_payload;
    }
    state parse_payload {
        transition select(headers.ipv4.protocol) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(headers.udp);
        metadata.first = packet.lookahead<bit<8>>();
        packet.advance(8);
        metadata.ahead = packet.lookahead<bit<16>>();
        transition accept;
    }
    state parse_tcp {
        packet.extract(headers.tcp);
        verify(headers.tcp.data_offset >= 5, error.HeaderTooShort);
        metadata.left = ((bit<16>)headers.tcp.data_offset - 5) << 2;
        transition select(metadata.left) {
            0: accept;
            4 .. 40: look;
            default: accept;
        }
    }
    // Only the options at the beginning are taken apart, in the order MSS, window scale; the rest
    // stays together.
    state look {
        KindAndLength next = packet.lookahead<KindAndLength>();
        metadata.options = metadata.options + 1;
        transition select(next.kind, next.length) {
            (2, 4): parse_mss;
            (3, 3): parse_scale;
            default: parse_rest;
        }
    }
    state parse_mss {
        packet.extract(headers.mss);
        metadata.mss = headers.mss.mss;
        metadata.left = metadata.left - 4;
        transition select(metadata.left) {
            0: accept;
            default: look_for_scale;
        }
    }
    state look_for_scale {
        transition select(packet.lookahead<bit<16>>()) {
            0x0303: parse_scale;
            default: parse_rest;
        }
    }
    state parse_scale {
        packet.extract(headers.scale);
        metadata.scale = headers.scale.shift;
        metadata.left = metadata.left - 3;
        transition parse_rest;
    }
    state parse_rest {
        metadata.others = (bit<8>)metadata.left;
        packet.extract(headers.tcp_options, (bit<32>)metadata.left << 3);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.HeaderTooShort) {
            standard.egress_spec = 2;
        } else if (standard.parser_error == error.PacketTooShort) {
            standard.egress_spec = 3;
        } else if (standard.parser_error != error.NoError) {
            standard.egress_spec = 4;
        }
        headers.report.setValid();
        headers.report.mss = metadata.mss;
        headers.report.scale = metadata.scale;
        headers.report.options = metadata.options;
        headers.report.others = metadata.others;
        headers.report.first = metadata.first;
        headers.report.ahead = metadata.ahead;
        if (headers.mss.isValid() && headers.mss.mss > 1000) {
            headers.mss.mss = 1000;
        }
        if (headers.ipv4_options.isValid() && headers.ipv4.ttl == 7) {
            headers.ipv4.ihl = 5;
            headers.ipv4_options.setInvalid();
        }
        if (headers.ipv4.ttl == 9 && headers.ipv4_options.isValid()) {
            headers.tcp_options = headers.ipv4_options;  // of another length
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
