// SPDX-License-Identifier: Apache-2.0
//
// One of everything that P4Runtime can write and read: every match kind, const entries, direct and
// indexed counters and meters, an action profile and a selector, registers with and without sign, a
// value set, a digest, clones, multicast, packets from and to a controller, idle timeouts.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> Mac;
typedef bit<9> Port;

const Port CPU_PORT = 255;
const bit<32> CLONES = 7;  // a clone session

@controller_header("packet_in")
header PacketIn {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header PacketOut {
    bit<9> egress_port;
    bit<7> padding;
}

header Ethernet {
    Mac destination;
    Mac source;
    bit<16> ethertype;
}

header Ipv4 {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

struct Headers {
    PacketIn to_controller;
    PacketOut from_controller;
    Ethernet ethernet;
    Ipv4 ipv4;
}

struct Learned {
    Mac source;
    Port port;
    bool is_ipv4;
}

struct Metadata {
    bit<16> class;
    bit<2> color;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    value_set<bit<16>>(4) ipv4_types;

    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(headers.from_controller);
        transition ethernet;
    }
    state ethernet {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            0x0800: ipv4;
            ipv4_types: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control no_checksums(inout Headers headers, inout Metadata metadata) {
    apply {}
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) station_counter;
    direct_meter<bit<2>>(MeterType.bytes) class_meter;
    counter(8, CounterType.packets_and_bytes) by_port;
    meter(4, MeterType.packets) limits;
    register<bit<48>>(4) last_source;
    register<int<12>>(2) offsets;
    action_profile(16) next_hops;
    action_selector(HashAlgorithm.crc16, 64, 16) paths;

    action drop() {
        mark_to_drop(standard);
    }
    action send(Port port) {
        standard.egress_spec = port;
    }
    action counted_send(Port port) {
        station_counter.count();
        standard.egress_spec = port;
    }
    action spread(bit<16> group) {
        standard.mcast_grp = group;
    }
    action ask(bit<7> reason) {
        standard.egress_spec = CPU_PORT;
        headers.to_controller.setValid();
        headers.to_controller.ingress_port = standard.ingress_port;
        headers.to_controller.reason = reason;
    }
    action copy() {
        clone(CloneType.I2E, CLONES);
    }
    action classify(bit<16> class) {
        class_meter.read(metadata.color);
        metadata.class = class;
    }

    table stations {
        key = { headers.ethernet.destination: exact; }
        actions = { counted_send; @defaultonly ask; @defaultonly NoAction; }
        default_action = NoAction();
        counters = station_counter;
        support_timeout = true;
        size = 8;
    }
    table classes {
        key = {
            headers.ipv4.source: ternary;
            headers.ipv4.protocol: optional @name("protocol");
            headers.ipv4.total_length: range;
        }
        actions = { classify; drop; }
        const default_action = drop();
        meters = class_meter;
    }
    table routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { send; spread; drop; }
        default_action = drop();
        size = 4096;
    }
    table services {
        key = { headers.ipv4.tos: ternary; }
        actions = { copy; NoAction; }
        const entries = {
            0x10 &&& 0x30: copy();
            0x20 &&& 0x20: NoAction();
        }
    }
    table neighbours {
        key = { headers.ethernet.source: exact; }
        actions = { send; drop; }
        implementation = next_hops;
    }
    table groups {
        key = {
            headers.ipv4.destination: exact;
            headers.ipv4.source: selector;
            headers.ipv4.identification: selector;
        }
        actions = { send; drop; }
        implementation = paths;
    }
    table unkeyed {
        actions = { NoAction; copy; }
        default_action = NoAction();
    }

    apply {
        if (headers.from_controller.isValid()) {
            standard.egress_spec = headers.from_controller.egress_port;
            headers.from_controller.setInvalid();
        } else {
            by_port.count((bit<32>)standard.ingress_port & 7);
            last_source.write(0, headers.ethernet.source);
            int<12> offset;
            offsets.read(offset, 0);
            limits.execute_meter((bit<32>)standard.ingress_port & 3, metadata.color);
            digest<Learned>(1, { headers.ethernet.source, standard.ingress_port,
                                 headers.ipv4.isValid() });
            unkeyed.apply();
            if (headers.ipv4.isValid()) {
                services.apply();
                classes.apply();
                if (!groups.apply().hit) {
                    routes.apply();
                }
            } else if (!neighbours.apply().hit) {
                stations.apply();
            }
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply {}
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers.to_controller);
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
    }
}

V1Switch(parsing(), no_checksums(), ingress(), egress(), no_checksums(), deparsing()) main;
