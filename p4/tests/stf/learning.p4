// SPDX-License-Identifier: Apache-2.0
//
// A bridge that learns: the controller is told of new addresses by digests, and of addresses that
// nobody used for a while by idle timeouts. What it takes in is a set of values in the parser.
#include "frame.p4"

struct Headers {
    Ethernet ethernet;
}

struct Learned {
    bit<48> source;
    bit<9> port;
}

struct Metadata { }

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    value_set<bit<16>>(4) allowed;
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            allowed: accept;
            default: refuse;
        }
    }
    state refuse {
        headers.ethernet.setInvalid();
        transition accept;
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) by_source;

    action known() {
        by_source.count();
    }
    action drop() {
        mark_to_drop(standard);
    }
    action send(Port port) {
        standard.egress_spec = port;
    }
    table sources {
        key = {
            headers.ethernet.source: exact;
            standard.ingress_port: exact;
        }
        actions = { known; NoAction; }
        default_action = NoAction();
        counters = by_source;
        support_timeout = true;
    }
    table destinations {
        key = { headers.ethernet.destination: exact; }
        actions = { send; drop; }
        default_action = drop();
        support_timeout = true;
    }
    apply {
        if (!headers.ethernet.isValid()) {
            drop();
        } else {
            if (sources.apply().miss) {
                digest<Learned>(1, { headers.ethernet.source, standard.ingress_port });
            }
            destinations.apply();
        }
    }
}

NO_CHECKSUMS
NO_EGRESS
EMIT_ALL
SWITCH
