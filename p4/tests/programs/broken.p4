// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong in a parser: packets too short, conditions of our own, no transition that fits;
// and what the control plane says to parse (value sets).
#include "wire.p4"

error {
    WrongVersion,
    TooManyHops,
    Forbidden
}

header Tag {
    bit<16> value;
    bit<16> next;
}

header Body {
    bit<1> urgent;
    bit<3> version;
    bit<12> length;
    bit<8> hops;
    bit<8> kind;
    bit<32> data;
}

header Account {
    bit<8> problem;
    bit<8> reached;
    bit<8> set;
}

struct Headers {
    Ethernet ethernet;
    Account account;
    Tag[2] tags;
    Body body;
}

struct Metadata {
    bit<8> reached;  // the state that parsing got to
    bit<8> set;
}

// Of 17 bits each: simple_switch_CLI (1.15.5) takes no values for sets of whole bytes.
struct TagKey {
    bit<1> odd;
    bit<16> ethertype;
}

struct BodyKey {
    bit<1> urgent;
    bit<8> kind;
    bit<8> hops;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    value_set<TagKey>(4) tag_types;
    value_set<BodyKey>(8) bodies;

    state start {
        packet.extract(headers.ethernet);
        metadata.reached = 1;
        transition select(headers.ethernet.source[0:0], headers.ethernet.ethertype) {
            tag_types: parse_tag;
            (_, 0x1234): parse_body;
            (_, 0x7777): forbidden;
            (_, 0xf000 &&& 0xf000): unfinished;
        }
    }
    state parse_tag {
        metadata.reached = 2;
        packet.extract(headers.tags.next);
        transition select(headers.tags.last.value[0:0], headers.tags.last.next) {
            tag_types: parse_tag;
            (_, 0x1234): parse_body;
            default: accept;
        }
    }
    state parse_body {
        metadata.reached = 3;
        packet.extract(headers.body);
        verify(headers.body.version == 6 || headers.body.version == 4, error.WrongVersion);
        metadata.reached = 4;
        verify(headers.body.hops < 30 && headers.body.length >= 7, error.TooManyHops);
        metadata.reached = 5;
        transition select(headers.body.urgent, headers.body.kind, headers.body.hops) {
            bodies: in_set;
            (_, 0x10, _): second_look;
            (0, 0x20 .. 0x2f, 0 .. 15): second_look;
            default: accept;
        }
    }
    state in_set {
        metadata.set = 1;
        transition accept;
    }
    state second_look {
        metadata.reached = 6;
        bit<32> ahead = packet.lookahead<bit<32>>();
        metadata.reached = 7;
        transition select(ahead[15:0], ahead[31:16] & 0xff) {
            (0xffff, 0 &&& 0x0f): forbidden;
            default: accept;
        }
    }
    state forbidden {
        verify(false, error.Forbidden);
        transition accept;
    }
    state unfinished {
        metadata.reached = 8;
        packet.advance(64);
        metadata.reached = 9;
        transition select(packet.lookahead<bit<8>>()) {
            0: accept;
            1: accept;
        }
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    bit<8> problem;
    apply {
        problem = 0;
        if (standard.parser_error == error.PacketTooShort) {
            problem = 1;
        } else if (standard.parser_error == error.NoMatch) {
            problem = 2;
        } else if (standard.parser_error == error.StackOutOfBounds) {
            problem = 3;
        } else if (standard.parser_error == error.WrongVersion) {
            problem = 4;
        } else if (standard.parser_error == error.TooManyHops) {
            problem = 5;
        } else if (standard.parser_error == error.Forbidden) {
            problem = 6;
        } else if (standard.parser_error != error.NoError) {
            problem = 7;
        }
        standard.egress_spec = problem == 0 ? (Port)1 : (Port)2;
        headers.ethernet.setValid();  // even if the packet has not even that
        headers.account.setValid();
        headers.account.problem = problem;
        headers.account.reached = metadata.reached;
        headers.account.set = metadata.set;
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
