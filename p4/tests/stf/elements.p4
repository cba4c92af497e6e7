// SPDX-License-Identifier: Apache-2.0
//
// Elements of a header stack that are chosen at run time: extracted into, asked whether they are
// there, read in a key, written to.
#include "frame.p4"

header Kind {
    bit<8> index;
}

header Label {
    bit<8> value;
}

struct Headers {
    Kind kind;
    Label[4] labels;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    bit<32> place;

    state start {
        packet.extract(headers.kind);
        place = 0;
        transition label;
    }
    state label {
        packet.extract(headers.labels[place]);
        place = place + 1;
        transition select(packet.lookahead<bit<8>>()) {
            0xff: accept;
            default: label;
        }
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action mark(bit<8> value) {
        headers.labels[headers.kind.index].value = value;
    }

    table values {
        key = { headers.labels[headers.kind.index].value: exact; }
        actions = { mark; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        standard.egress_spec = 1;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 3;
        } else if (headers.labels[headers.kind.index].isValid()) {
            values.apply();
        } else {
            standard.egress_spec = 2;
        }
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
