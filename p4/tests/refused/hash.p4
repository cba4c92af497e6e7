// SPDX-License-Identifier: Apache-2.0
//
// A hash that is none.
#include "../stf/frame.p4"

header Pair {
    bit<8> a;
    bit<8> b;
}

struct Headers {
    Pair pair;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.pair);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        hash(headers.pair.b, HashAlgorithm.random, 8w0, { headers.pair.a }, 8w10);  // refused: hash algorithm "random"
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
