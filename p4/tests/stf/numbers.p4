// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic that stops at the bounds of a type, registers, counters, random numbers, packets cut
// short. The packet says what is to be done.
#include "frame.p4"

header Task {
    bit<8> what;
    bit<8> unsigned_a;
    bit<8> unsigned_b;
    int<8> signed_a;
    int<8> signed_b;
    bit<16> result;
}

struct Headers {
    Task task;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.task);
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    register<bit<16>, bit<8>>(4) kept;
    register<bit<72>, bit<8>>(2) wide;
    counter<bit<8>>(4, CounterType.packets_and_bytes) tasks;

    apply {
        bit<8> index = headers.task.unsigned_a;
        bit<16> value;
        standard.egress_spec = 1;
        tasks.count(headers.task.what);
        if (headers.task.what == 0) {
            headers.task.result[15:8] = headers.task.unsigned_a |+| headers.task.unsigned_b;
            headers.task.result[7:0] = headers.task.unsigned_a |-| headers.task.unsigned_b;
        } else if (headers.task.what == 1) {
            headers.task.result[15:8] = (bit<8>)(headers.task.signed_a |+| headers.task.signed_b);
            headers.task.result[7:0] = (bit<8>)(headers.task.signed_a |-| headers.task.signed_b);
        } else if (headers.task.what == 2) {
            @atomic {
                kept.read(value, index);
                value = value |+| (bit<16>)headers.task.result;
                kept.write(index, value);
            }
            headers.task.result = value;
        } else if (headers.task.what == 3) {
            random(headers.task.result, 100, 103);
        } else if (headers.task.what == 4) {
            truncate((bit<32>)index);
        } else if (headers.task.what == 5) {
            wide.write(1, 8w0xab ++ (bit<64>)headers.task.result);
        } else if (headers.task.what == 6) {
            // 0x8000 has no positive counterpart
            headers.task.result = (bit<16>)(-(int<16>)headers.task.result);
        } else {
            mark_to_drop(standard);
        }
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
