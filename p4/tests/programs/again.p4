// SPDX-License-Identifier: Apache-2.0
//
// Packets that go round again: resubmitted as they came, recirculated as they would have left; what
// metadata they take with them.
#include "wire.p4"

const bit<32> RECIRCULATED = 4;
const bit<32> RESUBMITTED = 6;

const bit<8> KEEP_ROUNDS = 1;
const bit<8> KEEP_ALL = 2;

header Trip {
    bit<8> resubmissions;   // still to go
    bit<8> recirculations;  // still to go
    bit<8> trail;           // shifted at each round
    bit<8> rounds;
    bit<16> port;
    bit<16> length;
}

header Mark {
    bit<16> value;
}

struct Headers {
    Ethernet ethernet;
    Trip trip;
    Mark mark;
}

struct Metadata {
    @field_list(KEEP_ROUNDS, KEEP_ALL)
    bit<8> rounds;
    @field_list(KEEP_ALL)
    bit<9> came_by;
    bit<8> forgotten;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            0x1234: parse_trip;
            default: accept;
        }
    }
    state parse_trip {
        packet.extract(headers.trip);
        transition select(standard.instance_type) {
            RECIRCULATED: parse_mark;
            default: accept;
        }
    }
    state parse_mark {
        packet.extract(headers.mark);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        if (!headers.trip.isValid()) {
            mark_to_drop(standard);
            return;
        }
        if (standard.instance_type == 0) {
            metadata.came_by = standard.ingress_port;
        }
        metadata.rounds = metadata.rounds + 1;
        metadata.forgotten = metadata.forgotten + 1;
        standard.egress_spec = 2;
        headers.trip.trail = (headers.trip.trail << 2) | (bit<8>)standard.instance_type[1:0];
        if (metadata.rounds <= headers.trip.resubmissions
            && standard.instance_type != RECIRCULATED) {
            // what was changed is undone, but for the field list's metadata
            if (headers.ethernet.source[0:0] == 1) {
                resubmit_preserving_field_list(KEEP_ALL);
            } else {
                resubmit_preserving_field_list(KEEP_ROUNDS);
            }
        }
        headers.trip.rounds = metadata.rounds;
        headers.trip.port = (bit<16>)metadata.came_by;
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        headers.trip.length = (bit<16>)standard.packet_length;
        headers.ethernet.destination[7:0] = (bit<8>)standard.instance_type;
        headers.ethernet.destination[15:8] = metadata.forgotten;
        if (headers.trip.recirculations != 0) {
            headers.trip.recirculations = headers.trip.recirculations - 1;
            if (headers.mark.isValid()) {
                headers.mark.value = headers.mark.value + 1;
            } else {
                headers.mark.setValid();  // two bytes longer
                headers.mark.value = 0x100;
            }
            recirculate_preserving_field_list(KEEP_ALL);
        } else if (headers.trip.rounds == 5) {
            recirculate_preserving_field_list(KEEP_ROUNDS);
            mark_to_drop(standard);  // stronger
        }
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
