// SPDX-License-Identifier: Apache-2.0
//
// The switch of every topology, its router and base station: routes IPv4 and IPv6, loses packets
// as the channel of each port would, marks those that leave a long queue (ECN) and samples the
// queues. Loss, marking and telemetry of a port are off until a table names the port.
//
// Every parameter is action data, so any control plane can change it, P4Runtime too; registers
// hold state only. Hosts have static neighbours: the switch answers neither ARP (RFC 826) nor
// neighbour discovery (RFC 4861). What is not IP goes where `bridge` says, else it is dropped.
// A VLAN tag (IEEE 802.1Q) is passed on as it came.
#include <core.p4>
#define V1MODEL_VERSION 20200408  // indices of any width
#include <v1model.p4>

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const bit<4> IPV4_MIN_IHL = 5;  // 32-bit words: a header without options (RFC 791)

const bit<8> LAST_HOP = 1;  // TTL (RFC 1812, 5.3.1) and hop limit (RFC 8200, 3): no further

// RFC 3168, section 5: the ECN field.
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE = 3;

// v1model's standard_metadata.instance_type, as simple_switch sets it.
const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

// The mirror session that takes a sample from egress back to ingress, where digests are sent. Its
// port needs no interface: the sample never leaves the switch.
const bit<32> TELEMETRY_SESSION = 1;
const bit<8> TELEMETRY_FIELDS = 1;  // the fields that stay with it

#define PORTS 512  // of 9 bits
typedef bit<9> Port;
typedef bit<48> Mac;

// Why a packet was dropped. `drops` has a counter for each cause and port: index (cause, port).
#define CAUSES 8
typedef bit<3> Cause;
const Cause DROPPED_MALFORMED = 0;     // headers cut short or inconsistent
const Cause DROPPED_BAD_CHECKSUM = 1;  // IPv4 header
const Cause DROPPED_LAST_HOP = 2;      // TTL or hop limit used up
const Cause DROPPED_NO_ROUTE = 3;
const Cause DROPPED_NOT_IP = 4;  // and `bridge` does not say where to
const Cause DROPPED_LOST = 5;    // by the loss model of the port it came in by

// A probability p is the threshold p x 2^32: it has happened if a 32-bit draw is below.
// 33 bits, so that 2^32 is certainty.
typedef bit<33> Threshold;

header Ethernet {
    Mac destination;
    Mac source;
    bit<16> ethertype;
}

header Vlan {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> ethertype;
}

header Ipv4 {
    bit<4> version;
    bit<4> ihl;  // 32-bit words
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;  // bytes
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;  // 8-byte units
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header Ipv4Options {
    varbit<320> data;
}

header Ipv6 {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_length;  // bytes
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> source;
    bit<128> destination;
}

header Tcp {
    bit<16> source;
    bit<16> destination;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;  // 32-bit words
    bit<4> reserved;
    bit<8> flags;
    bit<16> window;  // bytes, before scaling
    bit<16> checksum;
    bit<16> urgent;
}

header Udp {
    bit<16> source;
    bit<16> destination;
    bit<16> length;  // bytes
    bit<16> checksum;
}

struct Headers {
    Ethernet ethernet;
    Vlan vlan;
    Ipv4 ipv4;
    Ipv4Options ipv4_options;
    Ipv6 ipv6;
    Tcp tcp;
    Udp udp;
}

// What the queue of a port was like for one packet.
struct Sample {
    @field_list(TELEMETRY_FIELDS)
    Port port;
    @field_list(TELEMETRY_FIELDS)
    bit<48> left_us;  // when it left the queue, by the switch's clock
    @field_list(TELEMETRY_FIELDS)
    bit<19> depth_at_enqueue;  // packets
    @field_list(TELEMETRY_FIELDS)
    bit<19> depth_at_dequeue;  // packets
    @field_list(TELEMETRY_FIELDS)
    bit<32> in_queue_us;
}

// What the tables say of the packet's port.
struct LossSettings {
    Threshold rate;  // loss rate: Bernoulli's
    Threshold in_good;  // loss rates in Gilbert-Elliott's states
    Threshold in_bad;
    Threshold good_to_bad;
    Threshold bad_to_good;
}

struct QueueSettings {
    bit<32> limit;  // packets
    bit<8> weight_shift;
    bit<32> interval;  // packets
}

struct Metadata {
    bit<16> source_port;  // TCP or UDP; 0: neither, or not the first fragment
    bit<16> destination_port;
    LossSettings loss;
    QueueSettings queue;
    Sample sample;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
             inout standard_metadata_t standard) {
    state start {
        transition select(standard.instance_type) {
            INSTANCE_RECIRCULATED: accept;  // a sample; nobody looks at its headers
            default: parse_ethernet;
        }
    }
    state parse_ethernet {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            ETHERTYPE_VLAN: parse_vlan;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(headers.vlan);
        transition select(headers.vlan.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        verify(headers.ipv4.version == 4, error.ParserInvalidArgument);
        verify(headers.ipv4.ihl >= IPV4_MIN_IHL, error.HeaderTooShort);
        transition select(headers.ipv4.ihl) {
            IPV4_MIN_IHL: parse_ipv4_payload;
            default: parse_ipv4_options;
        }
    }
    state parse_ipv4_options {
        packet.extract(headers.ipv4_options,
                       ((bit<32>)(headers.ipv4.ihl - IPV4_MIN_IHL)) << 5);
        transition parse_ipv4_payload;
    }
    state parse_ipv4_payload {
        transition select(headers.ipv4.fragment_offset, headers.ipv4.protocol) {
            (0, PROTOCOL_TCP): parse_tcp;
            (0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        verify(headers.ipv6.version == 6, error.ParserInvalidArgument);
        transition select(headers.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(headers.tcp);
        metadata.source_port = headers.tcp.source;
        metadata.destination_port = headers.tcp.destination;
        transition accept;
    }
    state parse_udp {
        packet.extract(headers.udp);
        metadata.source_port = headers.udp.source;
        metadata.destination_port = headers.udp.destination;
        transition accept;
    }
}

// RFC 791, section 3.1: over the header without its checksum, options included. What is not valid
// contributes nothing.
#define IPV4_CHECKSUM_DATA \
    { headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.dscp, headers.ipv4.ecn, \
      headers.ipv4.total_length, headers.ipv4.identification, headers.ipv4.flags, \
      headers.ipv4.fragment_offset, headers.ipv4.ttl, headers.ipv4.protocol, \
      headers.ipv4.source, headers.ipv4.destination, headers.ipv4_options.data }

control checking(inout Headers headers, inout Metadata metadata) {
    apply {
        verify_checksum(headers.ipv4.isValid(), IPV4_CHECKSUM_DATA, headers.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control updating(inout Headers headers, inout Metadata metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(), IPV4_CHECKSUM_DATA, headers.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

// Loss on the channel behind a port, in one direction, as link-emulator's model has it
// (link-emulator/model/loss.hpp).
control Loss(in Port port, inout LossSettings settings, out bool lost) {
    register<bit<1>, Port>(PORTS) is_bad;  // the state of Gilbert-Elliott's model

    // Every packet is lost with the same probability, independently.
    action bernoulli(Threshold rate) {
        settings.rate = rate;
    }

    // Two states, left with a given probability after every packet (Gilbert 1960, Elliott 1963).
    action gilbert_elliott(Threshold good_to_bad, Threshold bad_to_good, Threshold in_good,
                           Threshold in_bad) {
        settings.good_to_bad = good_to_bad;
        settings.bad_to_good = bad_to_good;
        settings.in_good = in_good;
        settings.in_bad = in_bad;
    }

    table model {
        key = { port: exact; }
        actions = { bernoulli; gilbert_elliott; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        bit<32> draw;
        lost = false;
        switch (model.apply().action_run) {
            bernoulli: {
                random(draw, 0, 0xffffffff);
                lost = (Threshold)draw < settings.rate;
            }
            gilbert_elliott: {
                bit<1> bad;
                Threshold rate = settings.in_good;
                Threshold leave = settings.good_to_bad;
                is_bad.read(bad, port);
                if (bad == 1) {
                    rate = settings.in_bad;
                    leave = settings.bad_to_good;
                }
                random(draw, 0, 0xffffffff);
                lost = (Threshold)draw < rate;
                random(draw, 0, 0xffffffff);
                if ((Threshold)draw < leave) {
                    is_bad.write(port, bad ^ 1);
                }
            }
        }
    }
}

// Counters of bytes count frames without their check sequence.
control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    counter<Port>(PORTS, CounterType.packets_and_bytes) received;
    counter<bit<12>>(PORTS * CAUSES, CounterType.packets_and_bytes) drops;
    direct_counter(CounterType.packets_and_bytes) ipv4_flow_counter;
    direct_counter(CounterType.packets_and_bytes) ipv6_flow_counter;
    Loss() loss;
    bool lost;

    action discard(in Cause cause) {
        drops.count(cause ++ standard.ingress_port);
        mark_to_drop(standard);
    }

    // For tables: p4c makes copies of an action that is called directly, all of one name.
    action drop(Cause cause) {
        discard(cause);
    }

    // To the next hop; `source` is the address of the port it leaves by.
    action forward(Port port, Mac source, Mac destination) {
        standard.egress_spec = port;
        headers.ethernet.source = source;
        headers.ethernet.destination = destination;
    }

    action send(Port port) {
        standard.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard.mcast_grp = group;
    }

    table ipv4_routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { forward; drop; }
        default_action = drop(DROPPED_NO_ROUTE);
        size = 131072;
    }

    table ipv6_routes {
        key = { headers.ipv6.destination: lpm; }
        actions = { forward; drop; }
        default_action = drop(DROPPED_NO_ROUTE);
        size = 131072;
    }

    table bridge {
        key = {
            standard.ingress_port: exact;
            headers.ethernet.destination: exact;
        }
        actions = { send; flood; drop; }
        default_action = drop(DROPPED_NOT_IP);
        size = 1024;
    }

    // What came in of a flow and was not lost on the channel.
    table ipv4_flows {
        key = {
            headers.ipv4.source: exact;
            headers.ipv4.destination: exact;
            headers.ipv4.protocol: exact;
            metadata.source_port: exact;
            metadata.destination_port: exact;
        }
        actions = { NoAction; }
        default_action = NoAction();
        counters = ipv4_flow_counter;
        size = 65536;
    }

    table ipv6_flows {
        key = {
            headers.ipv6.source: exact;
            headers.ipv6.destination: exact;
            headers.ipv6.next_header: exact;
            metadata.source_port: exact;
            metadata.destination_port: exact;
        }
        actions = { NoAction; }
        default_action = NoAction();
        counters = ipv6_flow_counter;
        size = 65536;
    }

    apply {
        if (standard.instance_type == INSTANCE_RECIRCULATED) {
            digest(0, metadata.sample);
            mark_to_drop(standard);
        } else {
            received.count(standard.ingress_port);
            loss.apply(standard.ingress_port, metadata.loss, lost);
            if (lost) {
                discard(DROPPED_LOST);
            } else if (standard.parser_error != error.NoError) {
                discard(DROPPED_MALFORMED);
            } else if (headers.ipv4.isValid()) {
                ipv4_flows.apply();
                if (standard.checksum_error == 1) {
                    discard(DROPPED_BAD_CHECKSUM);
                } else if (headers.ipv4.ttl <= LAST_HOP) {
                    discard(DROPPED_LAST_HOP);
                } else {
                    headers.ipv4.ttl = headers.ipv4.ttl - 1;
                    ipv4_routes.apply();
                }
            } else if (headers.ipv6.isValid()) {
                ipv6_flows.apply();
                if (headers.ipv6.hop_limit <= LAST_HOP) {
                    discard(DROPPED_LAST_HOP);
                } else {
                    headers.ipv6.hop_limit = headers.ipv6.hop_limit - 1;
                    ipv6_routes.apply();
                }
            } else {
                bridge.apply();
            }
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    counter<Port>(PORTS, CounterType.packets_and_bytes) sent;
    counter<Port>(PORTS, CounterType.packets_and_bytes) losses;  // the only cause of drops here
    counter<Port>(PORTS, CounterType.packets_and_bytes) marked;
    register<bit<32>, Port>(PORTS) queue_average;                // packets x 2^weight_shift
    register<bit<32>, Port>(PORTS) since_sample;                 // packets
    Loss() loss;
    bool lost;

    // Marks packets that met an averaged queue of more than `limit` packets. The average is RED's
    // (Floyd and Jacobson 1993, section 4): each packet moves it by 2^-shift of the difference to
    // the queue it found, itself not counted. It stays as it is while no packet comes.
    // shift: 0 (the queue itself) to 12; when it is changed, the average settles anew.
    action mark_over(bit<32> limit, bit<8> shift) {
        metadata.queue.limit = limit;
        metadata.queue.weight_shift = shift;
    }

    table marking {
        key = { standard.egress_port: exact; }
        actions = { mark_over; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    // Every n-th packet is sampled. n: 1 or more.
    action sample_every(bit<32> n) {
        metadata.queue.interval = n;
    }

    table telemetry {
        key = { standard.egress_port: exact; }
        actions = { sample_every; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (standard.instance_type == INSTANCE_EGRESS_CLONE) {
            recirculate_preserving_field_list(TELEMETRY_FIELDS);
        } else {
            if (telemetry.apply().hit) {
                bit<32> count;
                since_sample.read(count, standard.egress_port);
                count = count + 1;
                if (count >= metadata.queue.interval) {
                    count = 0;
                    metadata.sample.port = standard.egress_port;
                    metadata.sample.left_us = standard.egress_global_timestamp;
                    metadata.sample.depth_at_enqueue = standard.enq_qdepth;
                    metadata.sample.depth_at_dequeue = standard.deq_qdepth;
                    metadata.sample.in_queue_us = standard.deq_timedelta;
                    clone_preserving_field_list(CloneType.E2E, TELEMETRY_SESSION, TELEMETRY_FIELDS);
                }
                since_sample.write(standard.egress_port, count);
            }
            if (marking.apply().hit) {
                bit<32> average;
                queue_average.read(average, standard.egress_port);
                average = average - (average >> metadata.queue.weight_shift)
                        + (bit<32>)standard.enq_qdepth;
                queue_average.write(standard.egress_port, average);
                if (average > (metadata.queue.limit << metadata.queue.weight_shift)) {
                    if (headers.ipv4.isValid() && headers.ipv4.ecn != ECN_NOT_ECT) {
                        headers.ipv4.ecn = ECN_CE;
                        marked.count(standard.egress_port);
                    } else if (headers.ipv6.isValid() && headers.ipv6.ecn != ECN_NOT_ECT) {
                        headers.ipv6.ecn = ECN_CE;
                        marked.count(standard.egress_port);
                    }
                }
            }
            loss.apply(standard.egress_port, metadata.loss, lost);
            if (lost) {
                losses.count(standard.egress_port);
                mark_to_drop(standard);
            } else {
                sent.count(standard.egress_port);
            }
        }
    }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
