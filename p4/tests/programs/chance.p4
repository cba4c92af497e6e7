// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: a few values, one bit, 32 bits, a range of one, a range upside down. What comes
// out differs from run to run; the test looks at the distribution.
#include "wire.p4"

header Draw {
    bit<8> die;       // 1 to 6
    bit<8> coin;      // 0 or 1
    bit<32> word;
    bit<16> fixed;    // 77
    bit<16> reversed; // as it came: lo > hi writes nothing
}

struct Headers {
    Ethernet ethernet;
    Draw draw;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.draw);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    bit<1> coin;
    apply {
        standard.egress_spec = 1;
        random(headers.draw.die, 1, 6);
        random(coin, 0, 1);
        headers.draw.coin = (bit<8>)coin;
        random(headers.draw.fixed, 77, 77);
        random(headers.draw.reversed, 9, 3);
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        random(headers.draw.word, 0, 0xffffffff);
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
