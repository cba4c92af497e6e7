// SPDX-License-Identifier: Apache-2.0
//
// Elements of a header stack as whole headers: the last one read in the parser, any one copied,
// also where it does not exist.
#include "frame.p4"

header Kind {
    bit<8> what;
}

header Label {
    bit<7> value;
    bit<1> is_last;
}

struct Headers {
    Kind kind;
    Label seen;
    Label[3] labels;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.kind);
        transition label;
    }
    state label {
        packet.extract(headers.labels.next);
        headers.seen = headers.labels.last;
        transition select(headers.labels.last.is_last) {
            1: accept;
            default: label;
        }
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 2;
        }
        if (headers.kind.what == 1) {
            headers.labels[0] = headers.labels[2];
        } else if (headers.kind.what == 2) {
            headers.labels.push_front(1);
            headers.labels[0] = headers.seen;
        } else if (headers.kind.what == 3) {
            headers.labels.pop_front(1);
        } else if (headers.kind.what == 4) {
            headers.seen.setInvalid();
        }
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
