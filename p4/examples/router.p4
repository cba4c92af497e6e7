// SPDX-License-Identifier: Apache-2.0
//
// A user's program for a switch in an experiment (experiments/own-program.yaml). It routes IPv4
// (RFC 1812, without ICMP), and counts packets and bytes of each route. The controller
// router_controller.py adds the routes.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> LAST_HOP = 1;  // a TTL that forbids forwarding

typedef bit<9> Port;
typedef bit<48> Mac;

header Ethernet {
    Mac destination;
    Mac source;
    bit<16> ethertype;
}

header Ipv4 {
    bit<4> version;
    bit<4> ihl;
    bit<8> traffic_class;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

struct Headers {
    Ethernet ethernet;
    Ipv4 ipv4;
}

struct Metadata {}

parser RouterParser(packet_in packet, out Headers headers, inout Metadata metadata,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(headers.ipv4);
        // Packets with options are dropped without an ICMP error.
        verify(headers.ipv4.version == 4 && headers.ipv4.ihl == 5, error.ParserInvalidArgument);
        transition accept;
    }
}

control CheckChecksum(inout Headers headers, inout Metadata metadata) {
    apply {
        verify_checksum(headers.ipv4.isValid(),
                        {headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.traffic_class,
                         headers.ipv4.total_length, headers.ipv4.identification,
                         headers.ipv4.flags, headers.ipv4.fragment_offset, headers.ipv4.ttl,
                         headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination},
                        headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) forwarded;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(Port port, Mac own, Mac neighbour) {
        forwarded.count();
        standard_metadata.egress_spec = port;
        headers.ethernet.source = own;
        headers.ethernet.destination = neighbour;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }

    table routes {
        key = {
            headers.ipv4.destination: lpm;
        }
        actions = {
            forward;
            @defaultonly drop;
        }
        default_action = drop();
        counters = forwarded;
        size = 1024;
    }

    apply {
        if (headers.ipv4.isValid() && standard_metadata.parser_error == error.NoError &&
            standard_metadata.checksum_error == 0 && headers.ipv4.ttl > LAST_HOP) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard_metadata) {
    apply {}
}

control UpdateChecksum(inout Headers headers, inout Metadata metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(),
                        {headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.traffic_class,
                         headers.ipv4.total_length, headers.ipv4.identification,
                         headers.ipv4.flags, headers.ipv4.fragment_offset, headers.ipv4.ttl,
                         headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination},
                        headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
    }
}

V1Switch(RouterParser(), CheckChecksum(), ingress(), egress(), UpdateChecksum(),
         RouterDeparser()) main;
