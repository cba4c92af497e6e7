// SPDX-License-Identifier: Apache-2.0
//
// Keys that are ranges, ternary, optional and prefixes, and which of several entries wins. The
// entry says its number in the packet.
#include "frame.p4"

header Query {
    bit<8> table_number;
    bit<16> a;
    bit<16> b;
    bit<8> answer;
}

struct Headers {
    Query query;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.query);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action say(bit<8> answer) {
        headers.query.answer = answer;
    }
    table ranges {
        key = {
            headers.query.a: range;
            headers.query.b: exact;
        }
        actions = { say; }
        const default_action = say(0xff);
    }
    table mixed {
        key = {
            headers.query.a: ternary;
            headers.query.b: optional;
        }
        actions = { say; }
        default_action = say(0xfe);
    }
    table prefixes {
        key = {
            headers.query.a: lpm;
            headers.query.b: exact;
        }
        actions = { say; @defaultonly NoAction; }
        default_action = NoAction();
        size = 3;
    }
    table fixed {
        key = { headers.query.a: ternary; }
        actions = { say; }
        const entries = {
            0x1200 &&& 0xff00: say(1);
            0x0034 &&& 0x00ff: say(2);
            _: say(3);
        }
    }
    apply {
        standard.egress_spec = 1;
        if (headers.query.table_number == 0) {
            ranges.apply();
        } else if (headers.query.table_number == 1) {
            mixed.apply();
        } else if (headers.query.table_number == 2) {
            prefixes.apply();
        } else {
            fixed.apply();
        }
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
