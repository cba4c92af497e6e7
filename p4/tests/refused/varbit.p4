// SPDX-License-Identifier: Apache-2.0
//
// A field of variable length behind four bits. p4c's JSON does not say where header types stand.
#include "../stf/frame.p4"

header Options {
    bit<4> length;
    varbit<64> options;  // refused without a line: field of variable length that does not begin with a byte, options of header type Options
    bit<4> more;
}

struct Headers {
    Options options;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.options, 32w16);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
