// SPDX-License-Identifier: Apache-2.0
//
// Header unions, alone and in a stack; headers and stacks copied; switches on actions and on
// values; exit and return from within.
#include "wire.p4"

header Short { bit<8> kind; bit<8> value; }
header Long { bit<8> kind; bit<32> value; }
header Flag { bit<8> kind; }

header_union Item {
    Short s;
    Long l;
    Flag f;
}

header Count { bit<8> items; bit<8> way; }

struct Headers {
    Ethernet ethernet;
    Count count;
    Item first;
    Item[3] items;
    Short[2] pair;
}

struct Metadata {
    bit<8> left;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        packet.extract(headers.count);
        metadata.left = headers.count.items;
        transition select(metadata.left) {
            0: pairs;
            default: first;
        }
    }
    state first {
        metadata.left = metadata.left - 1;
        transition select(packet.lookahead<bit<8>>()) {
            1: first_short;
            2: first_long;
            default: first_flag;
        }
    }
    state first_short {
        packet.extract(headers.first.s);
        transition more;
    }
    state first_long {
        packet.extract(headers.first.l);
        transition more;
    }
    state first_flag {
        packet.extract(headers.first.f);
        transition more;
    }
    state more {
        transition select(metadata.left) {
            0: pairs;
            default: next_item;
        }
    }
    state next_item {
        metadata.left = metadata.left - 1;
        transition select(packet.lookahead<bit<8>>()) {
            1: next_short;
            2: next_long;
            default: next_flag;
        }
    }
    state next_short {
        packet.extract(headers.items.next.s);
        transition more;
    }
    state next_long {
        packet.extract(headers.items.next.l);
        transition more;
    }
    state next_flag {
        packet.extract(headers.items.next.f);
        transition more;
    }
    state pairs {
        transition select(packet.lookahead<bit<8>>()) {
            9: pair;
            default: accept;
        }
    }
    state pair {
        packet.extract(headers.pair[0]);
        packet.extract(headers.pair[1]);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action grow() {
        headers.first.l.setValid();
        headers.first.l.kind = 2;
        headers.first.l.value = 0x01020304;
    }
    action shrink() {
        headers.first.f.setValid();
        headers.first.f.kind = 3;
    }
    action leave() {
        standard.egress_spec = 3;
        exit;
    }
    action keep(bit<8> value) {
        headers.first.s.value = value;
    }
    table ways {
        key = { headers.count.way: exact; }
        actions = { grow; shrink; leave; keep; NoAction; }
        default_action = NoAction();
    }
    apply {
        standard.egress_spec = 1;
        if (!headers.count.isValid()) {
            standard.egress_spec = 4;
            return;
        }
        switch (ways.apply().action_run) {
            grow: { headers.count.items = 0x10 | headers.count.items; }
            shrink:
            keep: { headers.count.items = 0x20 | headers.count.items; }
            leave: { headers.count.items = 0xff; }  // never
            default: { headers.count.items = 0x40 | headers.count.items; }
        }
        switch (headers.count.way) {
            8w10: { headers.first.s.setInvalid(); headers.first.l.setInvalid(); }
            8w11: { headers.pair[1] = headers.pair[0]; headers.pair[1].value = 0x42; }
            8w12:
            8w13: { return; }
            default: { }
        }
        if (headers.first.isValid() && headers.items[0].s.isValid()) {
            headers.items[0].s.value = headers.items[0].s.value + 1;
        }
        if (headers.items[2].s.isValid() || headers.items[2].l.isValid()) {
            headers.items[2].l.setInvalid();
        }
        standard.egress_spec = 2;
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
        packet.emit(headers.ethernet);
        packet.emit(headers.count);
        packet.emit(headers.first);
        packet.emit(headers.items);
        packet.emit(headers.pair);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
