// SPDX-License-Identifier: Apache-2.0
//
// The router of topologies with a switch. It routes IPv4 and IPv6, loses packets as the channel
// behind each port would, marks packets after a long queue (ECN), and samples the queues. A port
// neither loses, marks nor samples packets before table `ports` has an entry for the port.
//
// All parameters are action data, so that any control plane can change them, also P4Runtime.
// Registers hold state only. The switch answers neither ARP (RFC 826) nor neighbour discovery
// (RFC 4861), because hosts have static neighbours. Packets other than IP are dropped. The VLAN tag
// (IEEE 802.1Q) of a packet does not change.
//
// Packets with an expired TTL or hop limit, and packets larger than the MTU of the next link, go to
// the controller (port CPU_PORT, header `packet_in`), which answers with ICMP errors (header
// `packet_out`). The switch does not fragment: packets too big and without DF are dropped.
#include <core.p4>
#define V1MODEL_VERSION 20200408  // indices of any width
#include <v1model.p4>

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;

const bit<4> IPV4_MIN_IHL = 5;  // length of a header without options, 32-bit words (RFC 791)

const bit<3> DO_NOT_FRAGMENT = 2;  // the flag DF (RFC 791, 3.1)
const bit<17> IPV6_HEADER_BYTES = 40;

const bit<8> LAST_HOP = 1;  // TTL or hop limit that forbids forwarding (RFC 1812, RFC 8200)

// RFC 3168, section 5: the ECN field.
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE = 3;

// Values of v1model's standard_metadata.instance_type in simple_switch.
const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

// The mirror session that sends samples from egress to ingress, where digests are sent. Its port
// needs no interface, because a sample never leaves the switch.
const bit<32> TELEMETRY_SESSION = 1;
const bit<8> TELEMETRY_FIELDS = 1;  // the fields that a clone and a recirculated packet retain

#define PORTS 512  // number of values of a port number, which has 9 bits
typedef bit<9> Port;
typedef bit<48> Mac;

const Port CPU_PORT = 509;  // of the controller; packets to and from it have a header of its own
const Port BY_ROUTE = 0;    // in packet_out: the route of the packet determines its port

// Why a packet was dropped (`drops`), or was sent to the controller instead of its destination
// (`told`). Both arrays have a counter per cause and port of arrival, at index cause x 512 + port.
#define CAUSES 8
typedef bit<3> Cause;
const Cause DROPPED_MALFORMED = 0;     // headers cut short or inconsistent
const Cause DROPPED_BAD_CHECKSUM = 1;  // IPv4 header
const Cause DROPPED_LAST_HOP = 2;      // TTL or hop limit expired; counted in `told`
const Cause DROPPED_NO_ROUTE = 3;
const Cause DROPPED_NOT_IP = 4;
const Cause DROPPED_TOO_BIG = 5;  // larger than the next link's MTU; `told`, without DF `drops`
const Cause DROPPED_LINK_SCOPE = 6;  // multicast with an expired TTL, such as IGMP and MLD

// Multicast (RFC 1112; RFC 4291, 2.7).
const bit<4> IPV4_MULTICAST = 0xe;
const bit<8> IPV6_MULTICAST = 0xff;

// A probability p is encoded as p x 2^32. The event occurs if a random number of 32 bits is below
// this threshold. A threshold has 33 bits, so that 2^32 stands for certainty.
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

// The header in front of a packet to the controller.
@controller_header("packet_in")
header PacketIn {
    Port ingress_port;
    bit<4> padding;
    Cause cause;
    bit<16> mtu;  // MTU of the next link in IP bytes, if the cause is DROPPED_TOO_BIG; otherwise 0
}

// The header in front of a packet from the controller.
@controller_header("packet_out")
header PacketOut {
    Port egress_port;  // port to send the packet unchanged; BY_ROUTE: route it like other packets
    bit<7> padding;
}

struct Headers {
    PacketIn packet_in;
    PacketOut packet_out;
    Ethernet ethernet;
    Vlan vlan;
    Ipv4 ipv4;
    Ipv4Options ipv4_options;
    Ipv6 ipv6;
}

// The state of a port's queue when a packet left the queue.
struct Sample {
    @field_list(TELEMETRY_FIELDS)
    Port port;
    @field_list(TELEMETRY_FIELDS)
    bit<48> left_us;  // time at which the packet left the queue, by the switch's clock
    @field_list(TELEMETRY_FIELDS)
    bit<19> depth_at_enqueue;  // packets
    @field_list(TELEMETRY_FIELDS)
    bit<19> depth_at_dequeue;  // packets
    @field_list(TELEMETRY_FIELDS)
    bit<32> in_queue_us;
}

// The settings of the output port, from table `ports`: see action `impose`.
struct Settings {
    bit<32> sample_every;  // packets; 0 stands for no samples
    bit<1> marks;
    bit<32> mark_over;  // packets
    bit<8> weight_shift;
    Threshold in_good;  // probabilities of loss in the states of Gilbert-Elliott's model
    Threshold in_bad;
    Threshold good_to_bad;
    Threshold bad_to_good;
}

struct Metadata {
    bit<16> mtu;  // MTU of the link to the next hop, in IP bytes
    Settings settings;
    Sample sample;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
             inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(headers.packet_out);
        transition select(headers.packet_out.egress_port) {
            BY_ROUTE: parse_ethernet;
            default: accept;  // the headers of this packet are not needed
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
        transition select(headers.ipv4.version, headers.ipv4.ihl) {
            (4, IPV4_MIN_IHL): accept;
            default: parse_ipv4_options;
        }
    }
    state parse_ipv4_options {
        verify(headers.ipv4.version == 4, error.ParserInvalidArgument);
        verify(headers.ipv4.ihl >= IPV4_MIN_IHL, error.HeaderTooShort);
        packet.extract(headers.ipv4_options,
                       ((bit<32>)(headers.ipv4.ihl - IPV4_MIN_IHL)) << 5);
        transition accept;
    }
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        verify(headers.ipv6.version == 6, error.ParserInvalidArgument);
        transition accept;
    }
}

// The IPv4 header without its checksum, but with its options (RFC 791, section 3.1). Headers that
// are not valid contribute nothing.
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

// Counters of bytes exclude the frame check sequence. For packets from the controller they include
// the header `packet_out`.
control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    counter<Port>(PORTS, CounterType.packets_and_bytes) received;
    counter<bit<12>>(PORTS * CAUSES, CounterType.packets_and_bytes) drops;
    counter<bit<12>>(PORTS * CAUSES, CounterType.packets_and_bytes) told;

    action discard(in Cause cause) {
        drops.count(cause ++ standard.ingress_port);
        mark_to_drop(standard);
    }

    // Send the frame to the controller. Only `forward` may have changed its MAC addresses.
    action tell(in Cause cause, in bit<16> mtu) {
        told.count(cause ++ standard.ingress_port);
        headers.packet_in.setValid();
        headers.packet_in.ingress_port = standard.ingress_port;
        headers.packet_in.padding = 0;
        headers.packet_in.cause = cause;
        headers.packet_in.mtu = mtu;
        standard.egress_spec = CPU_PORT;
    }

    // For tables only, because p4c copies an action that is called directly, with the same name.
    action drop(Cause cause) {
        discard(cause);
    }

    // To the next hop. `source`: MAC address of the output port; `mtu`: MTU of its link, IP bytes.
    action forward(Port port, Mac source, Mac destination, bit<16> mtu) {
        standard.egress_spec = port;
        headers.ethernet.source = source;
        headers.ethernet.destination = destination;
        metadata.mtu = mtu;
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

    apply {
        if (standard.instance_type == INSTANCE_RECIRCULATED) {
            digest(0, metadata.sample);
            mark_to_drop(standard);
        } else {
            received.count(standard.ingress_port);
            if (standard.parser_error != error.NoError) {
                discard(DROPPED_MALFORMED);
            } else if (headers.ipv4.isValid()) {
                if (standard.checksum_error == 1) {
                    discard(DROPPED_BAD_CHECKSUM);
                } else if (headers.ipv4.ttl <= LAST_HOP) {
                    if (headers.ipv4.destination[31:28] == IPV4_MULTICAST) {
                        discard(DROPPED_LINK_SCOPE);
                    } else {
                        tell(DROPPED_LAST_HOP, 0);
                    }
                } else {
                    switch (ipv4_routes.apply().action_run) {
                        forward: {
                            if (headers.ipv4.total_length <= metadata.mtu) {
                                headers.ipv4.ttl = headers.ipv4.ttl - 1;
                            } else if ((headers.ipv4.flags & DO_NOT_FRAGMENT) != 0) {
                                tell(DROPPED_TOO_BIG, metadata.mtu);
                            } else {
                                discard(DROPPED_TOO_BIG);
                            }
                        }
                    }
                }
            } else if (headers.ipv6.isValid()) {
                if (headers.ipv6.hop_limit <= LAST_HOP) {
                    if (headers.ipv6.destination[127:120] == IPV6_MULTICAST) {
                        discard(DROPPED_LINK_SCOPE);
                    } else {
                        tell(DROPPED_LAST_HOP, 0);
                    }
                } else {
                    switch (ipv6_routes.apply().action_run) {
                        forward: {
                            if ((bit<17>)headers.ipv6.payload_length + IPV6_HEADER_BYTES
                                    <= (bit<17>)metadata.mtu) {
                                headers.ipv6.hop_limit = headers.ipv6.hop_limit - 1;
                            } else {
                                tell(DROPPED_TOO_BIG, metadata.mtu);
                            }
                        }
                    }
                }
            } else if (headers.packet_out.isValid()
                    && headers.packet_out.egress_port != BY_ROUTE) {
                standard.egress_spec = headers.packet_out.egress_port;
            } else {
                discard(DROPPED_NOT_IP);
            }
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    counter<Port>(PORTS, CounterType.packets_and_bytes) sent;
    counter<Port>(PORTS, CounterType.packets_and_bytes) losses;  // all drops in egress
    counter<Port>(PORTS, CounterType.packets_and_bytes) marked;  // by this switch
    register<bit<32>, Port>(PORTS) queue_average;                // packets x 2^weight_shift
    register<bit<32>, Port>(PORTS) since_sample;                 // packets
    register<bit<1>, Port>(PORTS) is_bad;                        // state of Gilbert-Elliott's model

    // Set the impairments of packets that leave by a port.
    //
    // sample_every: every n-th packet samples the queue; 0: no samples.
    //
    // marks: 1: mark packets if the average queue exceeds `mark_over` packets. The average is that
    // of RED (Floyd and Jacobson 1993, section 4): each packet changes it by 2^-weight_shift of
    // the difference between the queue in front of the packet and the average. Without packets, the
    // average does not change. weight_shift: 0 (no averaging) to 12. After a change of
    // weight_shift, the average needs some packets until it is right again.
    //
    // Loss on the channel behind the port, as in link-emulator/model/loss: two states, and after
    // each packet a transition with the given probability (Gilbert 1960, Elliott 1963). If
    // good_to_bad is 0, packets are lost independently with probability in_good (Bernoulli).
    action impose(bit<32> sample_every, bit<1> marks, bit<32> mark_over, bit<8> weight_shift,
                  Threshold good_to_bad, Threshold bad_to_good, Threshold in_good,
                  Threshold in_bad) {
        metadata.settings.sample_every = sample_every;
        metadata.settings.marks = marks;
        metadata.settings.mark_over = mark_over;
        metadata.settings.weight_shift = weight_shift;
        metadata.settings.good_to_bad = good_to_bad;
        metadata.settings.bad_to_good = bad_to_good;
        metadata.settings.in_good = in_good;
        metadata.settings.in_bad = in_bad;
    }

    table ports {
        key = { standard.egress_port: exact; }
        actions = { impose; @defaultonly NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (standard.instance_type == INSTANCE_EGRESS_CLONE) {
            recirculate_preserving_field_list(TELEMETRY_FIELDS);
        } else {
            if (ports.apply().hit) {
                if (metadata.settings.sample_every != 0) {
                    bit<32> count;
                    @atomic {
                        since_sample.read(count, standard.egress_port);
                        count = count + 1;
                        if (count >= metadata.settings.sample_every) {
                            count = 0;
                        }
                        since_sample.write(standard.egress_port, count);
                    }
                    if (count == 0) {
                        metadata.sample.port = standard.egress_port;
                        metadata.sample.left_us = standard.egress_global_timestamp;
                        metadata.sample.depth_at_enqueue = standard.enq_qdepth;
                        metadata.sample.depth_at_dequeue = standard.deq_qdepth;
                        metadata.sample.in_queue_us = standard.deq_timedelta;
                        clone_preserving_field_list(CloneType.E2E, TELEMETRY_SESSION,
                                                    TELEMETRY_FIELDS);
                    }
                }
                if (metadata.settings.marks == 1) {
                    bit<32> average;
                    @atomic {
                        queue_average.read(average, standard.egress_port);
                        average = average - (average >> metadata.settings.weight_shift)
                                + (bit<32>)standard.enq_qdepth;
                        queue_average.write(standard.egress_port, average);
                    }
                    if (average > (metadata.settings.mark_over << metadata.settings.weight_shift)) {
                        // Packets that arrived with a mark do not count as marked by this switch.
                        if (headers.ipv4.isValid() && headers.ipv4.ecn != ECN_NOT_ECT
                                && headers.ipv4.ecn != ECN_CE) {
                            headers.ipv4.ecn = ECN_CE;
                            marked.count(standard.egress_port);
                        } else if (headers.ipv6.isValid() && headers.ipv6.ecn != ECN_NOT_ECT
                                && headers.ipv6.ecn != ECN_CE) {
                            headers.ipv6.ecn = ECN_CE;
                            marked.count(standard.egress_port);
                        }
                    }
                }
                bool lost = false;
                Threshold loss_rate = metadata.settings.in_good;
                bit<32> draw;
                if (metadata.settings.good_to_bad != 0) {
                    Threshold leave = metadata.settings.good_to_bad;
                    bit<1> bad;
                    random(draw, 0, 0xffffffff);
                    @atomic {
                        is_bad.read(bad, standard.egress_port);
                        if (bad == 1) {
                            loss_rate = metadata.settings.in_bad;
                            leave = metadata.settings.bad_to_good;
                        }
                        if ((Threshold)draw < leave) {
                            is_bad.write(standard.egress_port, bad ^ 1);
                        }
                    }
                }
                if (loss_rate != 0) {
                    random(draw, 0, 0xffffffff);
                    lost = (Threshold)draw < loss_rate;
                }
                if (lost) {
                    losses.count(standard.egress_port);
                    mark_to_drop(standard);
                } else {
                    sent.count(standard.egress_port);
                }
            } else {
                sent.count(standard.egress_port);
            }
        }
    }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers.packet_in);
        packet.emit(headers.ethernet);
        packet.emit(headers.vlan);
        packet.emit(headers.ipv4);
        packet.emit(headers.ipv4_options);
        packet.emit(headers.ipv6);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
