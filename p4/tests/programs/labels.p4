// SPDX-License-Identifier: Apache-2.0
//
// A stack of MPLS labels (RFC 3032): pushed, popped, swapped, read at an index that is known only
// at run time; more labels than the stack holds.
#include "wire.p4"

const bit<16> ETHERTYPE_MPLS = 0x8847;

header Label {
    bit<20> label;
    bit<3> traffic_class;
    bit<1> bottom;
    bit<8> ttl;
}

struct Headers {
    Ethernet ethernet;
    Label[4] labels;
    Ipv4 ipv4;
}

struct Metadata {
    bit<32> which;
    bit<8> seen;
    bit<20> second;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_MPLS: parse_label;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_label {
        packet.extract(headers.labels.next);
        metadata.seen = metadata.seen + 1;
        metadata.which = headers.labels.lastIndex;
        transition select(headers.labels.last.bottom) {
            0: parse_label;
            1: parse_ipv4;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action swap(bit<20> label, Port port) {
        headers.labels[0].label = label;
        headers.labels[0].ttl = headers.labels[0].ttl - 1;
        standard.egress_spec = port;
    }
    action push(bit<20> label, bit<3> traffic_class, Port port) {
        headers.labels.push_front(1);
        headers.labels[0].setValid();
        headers.labels[0].label = label;
        headers.labels[0].traffic_class = traffic_class;
        headers.labels[0].bottom = (bit<1>)(metadata.seen == 0 ? 1w1 : 1w0);
        headers.labels[0].ttl = 64;
        headers.ethernet.ethertype = ETHERTYPE_MPLS;
        standard.egress_spec = port;
    }
    action pop(Port port) {
        headers.labels.pop_front(1);
        standard.egress_spec = port;
    }
    action pop_two(Port port) {
        headers.labels.pop_front(2);
        standard.egress_spec = port;
    }
    // The label deepest in the stack, wherever that is, changes places with the first.
    action turn(Port port) {
        bit<20> first = headers.labels[0].label;
        bit<20> deepest = headers.labels[metadata.which].label;
        headers.labels[0].label = deepest;
        headers.labels[metadata.which].label = first;
        standard.egress_spec = port;
    }
    table label {
        key = { headers.labels[0].label: exact; }
        actions = { swap; push; pop; pop_two; turn; drop; }
        default_action = drop();
    }
    table unlabelled {
        key = { headers.ipv4.destination: lpm; }
        actions = { push; drop; }
        default_action = drop();
    }

    apply {
        if (standard.parser_error == error.StackOutOfBounds) {
            standard.egress_spec = 4;
            headers.ethernet.source[7:0] = metadata.seen;
        } else if (headers.labels[0].isValid()) {
            label.apply();
            if (!headers.labels[0].isValid()) {
                headers.ethernet.ethertype = ETHERTYPE_IPV4;
            }
        } else if (headers.ipv4.isValid()) {
            unlabelled.apply();
        } else {
            drop();
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {
        // standard.packet_length counts the labels pushed and popped
        headers.ethernet.source[47:32] = standard.packet_length[15:0];
        if (headers.labels[1].isValid() && headers.labels[1].label == headers.labels[0].label) {
            headers.labels[1].setInvalid();
        }
    }
}

control updating(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.labels);
        packet.emit(headers.ipv4);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
