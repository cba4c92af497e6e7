// SPDX-License-Identifier: Apache-2.0
//
// Entries whose action is a member of an action profile, or of a group that a hash chooses from.
#include "frame.p4"

header Flow {
    bit<16> destination;
    bit<16> flow;
    bit<8> mark;
    bit<8> way;
}

struct Headers {
    Flow flow;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.flow);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action_profile(4) marks;
    action_selector(HashAlgorithm.identity, 8, 16) ways;

    action mark(bit<8> value) {
        headers.flow.mark = value;
    }
    action take(Port port, bit<8> way) {
        standard.egress_spec = port;
        headers.flow.way = way;
    }
    action drop() {
        mark_to_drop(standard);
    }
    table marking {
        key = { headers.flow.flow: ternary; }
        actions = { mark; NoAction; }
        implementation = marks;
    }
    table routing {
        key = {
            headers.flow.destination: lpm;
            headers.flow.flow: selector;
        }
        actions = { take; drop; }
        implementation = ways;
    }
    apply {
        standard.egress_spec = 4;
        marking.apply();
        routing.apply();
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
