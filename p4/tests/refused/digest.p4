// SPDX-License-Identifier: Apache-2.0
//
// A digest with a field of variable length.
#include "../stf/frame.p4"

header Options {
    bit<8> length;
    varbit<64> options;
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
        digest(1, { headers.options.options });  // refused: field of variable length in a digest
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
