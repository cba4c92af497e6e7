// SPDX-License-Identifier: Apache-2.0
//
// A key of more than 4,096 bits.
#include "../stf/frame.p4"

header Wide {
    bit<2048> a;
    bit<2048> b;
    bit<8> c;
}

struct Headers {
    Wide wide;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.wide);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action go() {
        standard.egress_spec = 1;
    }
    table long {  // refused: key of more than 4,096 bits
        key = {
            headers.wide.a: exact;
            headers.wide.b: exact;
            headers.wide.c: exact;
        }
        actions = { go; }
    }
    apply {
        long.apply();
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
