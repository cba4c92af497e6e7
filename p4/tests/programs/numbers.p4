// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic: modulo, signed and saturating, shifts by more than the width, numbers of 1 to 200
// bits, slices, concatenation, casts, comparison of signed and unsigned numbers.
#include "wire.p4"

header Operands {
    bit<8> a8;
    bit<8> b8;
    bit<16> a16;
    bit<16> b16;
    bit<128> a128;
    bit<128> b128;
    bit<8> shift;
    int<8> s8;
    int<8> t8;
    int<16> s16;
    int<32> s32;
}

header Results {
    bit<8> sum;
    bit<8> difference;
    bit<8> product;
    bit<8> sat_sum;
    bit<8> sat_difference;
    bit<8> bits;
    bit<8> negative;
    bit<16> complement;
    bit<8> left;
    bit<8> right;
    int<8> signed_right;
    int<8> signed_left;
    int<8> signed_sum;
    int<8> signed_product;
    int<8> signed_sat_sum;
    int<8> signed_sat_difference;
    int<16> widened;
    int<8> narrowed;
    bit<16> unsigned;
    int<32> minus;
    bit<8> compared;
}

header Wide {
    bit<128> sum;
    bit<128> difference;
    bit<128> product;
    bit<128> left;
    bit<128> right;
    bit<128> mixed;
    bit<200> joined;
    bit<40> cut;
    bit<64> patched;
    bit<8> compared;
}

struct Headers {
    Ethernet ethernet;
    Operands operands;
    Results results;
    Wide wide;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.operands);
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
        if (!headers.operands.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<8> a = headers.operands.a8;
        bit<8> b = headers.operands.b8;
        bit<8> n = headers.operands.shift;
        int<8> s = headers.operands.s8;
        int<8> t = headers.operands.t8;

        headers.results.setValid();
        headers.results.sum = a + b;
        headers.results.difference = a - b;
        headers.results.product = a * b;
        headers.results.sat_sum = a |+| b;
        headers.results.sat_difference = a |-| b;
        headers.results.bits = (a & b) ^ (a | ~b);
        headers.results.negative = -a;
        headers.results.complement = ~headers.operands.a16 + -headers.operands.b16;
        headers.results.left = a << n;
        headers.results.right = a >> n;
        headers.results.signed_right = s >> n;
        headers.results.signed_left = s << n;
        headers.results.signed_sum = s + t;
        headers.results.signed_product = s * t;
        headers.results.signed_sat_sum = s |+| t;
        headers.results.signed_sat_difference = s |-| t;
        headers.results.widened = (int<16>)s;
        headers.results.narrowed = (int<8>)headers.operands.s16;
        headers.results.unsigned = (bit<16>)(int<16>)t;
        headers.results.minus = -headers.operands.s32;
        headers.results.compared =
            (s < t ? 1w1 : 0) ++ (s >= t ? 1w1 : 0) ++ (a < b ? 1w1 : 0) ++ (a >= b ? 1w1 : 0)
            ++ ((bit<8>)s > (bit<8>)t ? 1w1 : 0) ++ (headers.operands.s16 > (int<16>)s ? 1w1 : 0)
            ++ (headers.operands.s32 == -1 ? 1w1 : 0) ++ (bit<1>)(a == b && s != t);

        bit<128> x = headers.operands.a128;
        bit<128> y = headers.operands.b128;
        headers.wide.setValid();
        headers.wide.sum = x + y;
        headers.wide.difference = x - y;
        headers.wide.product = x * y;
        headers.wide.left = x << n;
        headers.wide.right = x >> n;
        headers.wide.mixed = (x & ~y) | (y[63:0] ++ x[127:64]);
        headers.wide.joined = x ++ y[71:0];
        headers.wide.cut = (bit<40>)(x ^ y) ^ y[127:88];
        headers.wide.patched = 0;
        headers.wide.patched[15:0] = headers.operands.b16;
        headers.wide.patched[47:16] = x[95:64];
        headers.wide.patched[63:60] = 4w0xf;
        headers.wide.patched[63:63] = (bit<1>)(x > y);
        headers.wide.compared = 0;
        if (x == y) {
            headers.wide.compared = 1;
        } else if (x < y && x[127:127] != y[127:127]) {
            headers.wide.compared = 2;
        } else if (x >= y || !(y - x < 128w0x10000000000000000)) {
            headers.wide.compared = 3;
        }
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
