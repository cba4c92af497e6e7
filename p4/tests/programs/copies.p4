// SPDX-License-Identifier: Apache-2.0
//
// Clones from ingress and from egress, to a port and to a group, with the metadata of a field list
// and without.
#include "wire.p4"

const bit<32> INGRESS_CLONE = 1;
const bit<32> EGRESS_CLONE = 2;

const bit<8> KEEP_BOTH = 1;
const bit<8> KEEP_SECOND = 2;

header Trace {
    bit<8> what;  // bits: 1 clone in ingress, 2 clone in egress, 4 keep, 8 drop the original
    bit<8> instance;
    bit<16> first;
    bit<16> second;
    bit<16> length;
}

struct Headers {
    Ethernet ethernet;
    Trace trace;
}

struct Metadata {
    @field_list(KEEP_BOTH)
    bit<16> first;
    @field_list(KEEP_BOTH, KEEP_SECOND)
    bit<16> second;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            0x1234: parse_trace;
            default: accept;
        }
    }
    state parse_trace {
        packet.extract(headers.trace);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        if (!headers.trace.isValid()) {
            mark_to_drop(standard);
        } else {
            standard.egress_spec = 1;
            metadata.first = 0x1111;
            if (headers.trace.what & 1 != 0) {
                if (headers.trace.what & 4 != 0) {
                    clone_preserving_field_list(CloneType.I2E, 5, KEEP_BOTH);
                } else if (headers.trace.what & 16 != 0) {
                    clone_preserving_field_list(CloneType.I2E, 6, KEEP_SECOND);
                } else {
                    clone(CloneType.I2E, 5);
                }
            }
            metadata.second = 0x2222;  // after the clone: what counts is the end of ingress
            headers.ethernet.destination = 0x020000000099;  // a clone does not see this
            if (headers.trace.what & 8 != 0) {
                mark_to_drop(standard);
            }
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        headers.trace.instance = (bit<8>)standard.instance_type;
        headers.trace.length = (bit<16>)standard.packet_length;
        headers.trace.first = metadata.first;
        headers.trace.second = metadata.second;
        if (standard.instance_type != INGRESS_CLONE && standard.instance_type != EGRESS_CLONE) {
            metadata.first = 0x3333;
            if (headers.trace.what & 2 != 0) {
                if (headers.trace.what & 4 != 0) {
                    clone_preserving_field_list(CloneType.E2E, 7, KEEP_BOTH);
                } else {
                    clone(CloneType.E2E, 7);
                }
            }
            headers.ethernet.source[7:0] = 0x77;  // an egress clone does
            if (headers.trace.what & 32 != 0) {
                mark_to_drop(standard);
            }
        } else {
            headers.ethernet.source[15:8] = 0x88;
        }
        headers.ethernet.source[47:40] = (bit<8>)standard.egress_port;
    }
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
