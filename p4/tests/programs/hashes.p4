// SPDX-License-Identifier: Apache-2.0
//
// Every hash there is, over fields that do not end on a byte, over headers that may be missing,
// over constants; with bases and ranges.
#include "wire.p4"

header Input {
    bit<3> a;
    bit<13> b;
    bit<7> c;
    bit<41> d;
    bit<8> e;
}

header Extra {
    bit<24> f;
    varbit<64> rest;
}

header Output {
    bit<16> crc16;
    bit<32> crc32;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> identity;
    bit<16> crc16_custom;
    bit<32> crc32_custom;
    bit<10> ranged;
    bit<6> unaligned;
    bit<32> constants;
    bit<8> single;
    bit<8> zero;
}

struct Headers {
    Ethernet ethernet;
    Output output;
    Input input;
    Extra extra;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.input);
        transition select(headers.input.e) {
            0 .. 8: extra;
            default: accept;
        }
    }
    state extra {
        packet.extract(headers.extra, (bit<32>)headers.input.e << 3);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 2;
        }
        if (!headers.input.isValid()) {
            mark_to_drop(standard);
            return;
        }
        headers.output.setValid();
        hash(headers.output.crc16, HashAlgorithm.crc16, 16w0,
             { headers.input.a, headers.input.b, headers.input.c, headers.input.d }, 32w0x10000);
        hash(headers.output.crc32, HashAlgorithm.crc32, 32w0,
             { headers.input.a, headers.input.b, headers.input.c, headers.input.d },
             64w0x100000000);
        if (headers.extra.isValid()) {
            hash(headers.output.csum16, HashAlgorithm.csum16, 16w0,
                 { headers.ethernet.source, headers.input.d, headers.extra.f }, 32w0x10000);
            hash(headers.output.xor16, HashAlgorithm.xor16, 16w0,
                 { headers.ethernet.source, headers.input.e, headers.extra.f }, 32w0x10000);
            hash(headers.output.crc32_custom, HashAlgorithm.crc32_custom, 32w0,
                 { headers.input.b, headers.extra.f, headers.input.a }, 64w0x100000000);
        }
        hash(headers.output.identity, HashAlgorithm.identity, 64w0,
             { headers.input.c, headers.input.b }, 64w0xffffffffffff);
        hash(headers.output.crc16_custom, HashAlgorithm.crc16_custom, 16w0,
             { headers.input.b, headers.input.a }, 32w0x10000);
        hash(headers.output.ranged, HashAlgorithm.crc32, 10w1000, { headers.input.d }, 10w20);
        hash(headers.output.unaligned, HashAlgorithm.crc16, 6w0, { headers.input.a }, 6w63);
        hash(headers.output.constants, HashAlgorithm.crc32, 32w0,
             { 16w0xbeef, headers.input.b, 3w5 }, 64w0x100000000);
        hash(headers.output.single, HashAlgorithm.crc16, 8w7, { headers.input.b }, 8w1);
        hash(headers.output.zero, HashAlgorithm.crc16, 8w9, { headers.input.b }, 8w0);
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply { }
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
