// SPDX-License-Identifier: Apache-2.0
//
// Registers of 1 to 160 bits, in ingress and egress; counters of every kind; indices that are not
// there.
#include "wire.p4"

header Request {
    bit<8> index;
    bit<8> what;
    bit<160> value;
}

struct Headers {
    Ethernet ethernet;
    Request request;
}

struct Metadata {
    bit<160> wide;
}

const bit<16> ETHERTYPE_REQUEST = 0x1234;

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_REQUEST: parse_request;
            default: accept;
        }
    }
    state parse_request {
        packet.extract(headers.request);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    register<bit<160>, bit<8>>(16) wide;
    register<bit<8>, bit<8>>(256) narrow;
    register<bit<1>, bit<8>>(8) flags;
    register<bit<32>, bit<8>>(1) total;
    counter<bit<8>>(16, CounterType.packets) packets;
    counter<bit<8>>(16, CounterType.bytes) bytes;
    counter<Port>(512, CounterType.packets_and_bytes) ports;
    direct_counter(CounterType.packets) whats;

    action nothing() { }
    table counted {
        key = { headers.request.what: exact; }
        actions = { nothing; }
        default_action = nothing();
        counters = whats;
    }

    apply {
        ports.count(standard.ingress_port);
        standard.egress_spec = standard.ingress_port;
        if (!headers.request.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<8> index = headers.request.index;
        packets.count(index);
        bytes.count(index);
        counted.apply();

        bit<32> sum;
        total.read(sum, 0);
        sum = sum + (bit<32>)headers.request.value[15:0];
        total.write(0, sum);

        bit<8> small;
        bit<1> flag = 1;
        if (headers.request.what == 0) {  // put and get the old
            bit<160> old = 0xdead;
            wide.read(old, index);
            wide.write(index, headers.request.value);
            headers.request.value = old;
        } else if (headers.request.what == 1) {  // add
            wide.read(metadata.wide, index);
            metadata.wide = metadata.wide + headers.request.value;
            wide.write(index, metadata.wide);
            headers.request.value = metadata.wide;
        } else if (headers.request.what == 2) {  // what is wider than the register is cut
            narrow.read(small, index);
            narrow.write(index, small + headers.request.value[7:0]);
            headers.request.value = (bit<160>)small;
        } else if (headers.request.what == 3) {  // flip
            flags.read(flag, index);
            flags.write(index, ~flag);
            headers.request.value = (bit<160>)flag;
        } else {
            headers.request.value = (bit<160>)sum;
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    register<bit<16>, Port>(512) sent;
    apply {
        bit<16> count;
        sent.read(count, standard.egress_port);
        count = count + 1;
        sent.write(standard.egress_port, count);
        headers.ethernet.source[15:0] = count;
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
