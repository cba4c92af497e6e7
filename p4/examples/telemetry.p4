// SPDX-License-Identifier: Apache-2.0
//
// In-band telemetry, after INT-MD of the P4 working group: every switch on the path of a frame adds
// a record of its queue. The last switch removes all records and reports them to its controller.
//
//     Ethernet | Shim | Hop (the latest switch) | ... | Hop (the first switch) | original payload
//
// A switch forwards by destination address. Three tables define its role: `sources` has the ports
// that hosts send to (their frames get a shim), `sinks` the ports that lead to hosts (the shim is
// removed, and the records go to the CPU port in a clone), `identity` the number of the switch.
// A frame grows by 4 bytes, and by 12 bytes per switch; MTUs between switches must allow for this.
// After MAX_HOPS records, further switches forward a frame without a record.
#include <core.p4>
#define V1MODEL_VERSION 20200408  // indices of any width
#include <v1model.p4>

typedef bit<9> Port;
typedef bit<48> Mac;

#define MAX_HOPS 4
const bit<32> REPORT_BYTES = 15;
const bit<32> HOP_BYTES = 12;
const bit<16> ETHERTYPE_TELEMETRY = 0x88b5;  // local experimental (IEEE 802)
const Port CPU_PORT = 255;
const bit<32> REPORTS = 1;  // the mirror session that leads to the CPU port
const bit<8> REPORT_FIELDS = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;  // standard_metadata.instance_type

header Ethernet {
    Mac destination;
    Mac source;
    bit<16> ethertype;
}

header Shim {
    bit<8> hops;  // number of records that follow
    bit<8> reserved;
    bit<16> ethertype;  // original ethertype of the frame
}

header Hop {
    bit<32> switch_id;
    bit<32> queue_packets;  // packets in the queue at the arrival of the frame
    bit<32> queue_us;       // time of the frame in the queue, in microseconds
}

@controller_header("packet_in")
header Report {
    bit<9> egress_port;  // the port that leads to the host
    bit<7> padding;
    Mac destination;
    Mac source;
    bit<8> hops;
}

struct Headers {
    Report report;
    Ethernet ethernet;
    Shim shim;
    Hop[MAX_HOPS] hops;
}

// A clone retains only these fields.
struct Metadata {
    @field_list(REPORT_FIELDS)
    Port egress_port;
    @field_list(REPORT_FIELDS)
    bit<8> hops;
    @field_list(REPORT_FIELDS)
    bit<96> hop_0;
    @field_list(REPORT_FIELDS)
    bit<96> hop_1;
    @field_list(REPORT_FIELDS)
    bit<96> hop_2;
    @field_list(REPORT_FIELDS)
    bit<96> hop_3;
    bit<8> to_extract;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_TELEMETRY: parse_shim;
            default: accept;
        }
    }
    state parse_shim {
        packet.extract(headers.shim);
        metadata.to_extract = headers.shim.hops;
        transition select(headers.shim.hops) {
            0: accept;
            default: parse_hop;
        }
    }
    state parse_hop {
        packet.extract(headers.hops.next);
        metadata.to_extract = metadata.to_extract - 1;
        transition select(metadata.to_extract) {
            0: accept;
            default: parse_hop;
        }
    }
}

control checking(inout Headers headers, inout Metadata metadata) {
    apply { }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) watched;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(Port port) {
        standard.egress_spec = port;
    }
    action watch() {
        watched.count();
        headers.shim.setValid();
        headers.shim.hops = 0;
        headers.shim.reserved = 0;
        headers.shim.ethertype = headers.ethernet.ethertype;
        headers.ethernet.ethertype = ETHERTYPE_TELEMETRY;
    }
    table destinations {
        key = { headers.ethernet.destination: exact; }
        actions = { forward; drop; }
        const default_action = drop();
    }
    table sources {
        key = { standard.ingress_port: exact; }
        actions = { watch; NoAction; }
        const default_action = NoAction();
        counters = watched;
    }
    apply {
        if (standard.parser_error != error.NoError) {
            drop();  // the frame is truncated, or has more than MAX_HOPS records
        } else if (destinations.apply().hit && !headers.shim.isValid()) {
            sources.apply();
        }
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    action record(bit<32> switch_id) {
        headers.hops.push_front(1);
        headers.hops[0].setValid();
        headers.hops[0].switch_id = switch_id;
        headers.hops[0].queue_packets = (bit<32>)standard.enq_qdepth;
        headers.hops[0].queue_us = standard.deq_timedelta;
        headers.shim.hops = headers.shim.hops + 1;
    }
    table identity {
        actions = { record; NoAction; }
        default_action = NoAction();
    }
    action report() {
        metadata.egress_port = standard.egress_port;
        metadata.hops = headers.shim.hops;
        clone_preserving_field_list(CloneType.E2E, REPORTS, REPORT_FIELDS);
        headers.ethernet.ethertype = headers.shim.ethertype;
        headers.shim.setInvalid();
        headers.hops.pop_front(MAX_HOPS);
    }
    table sinks {
        key = { standard.egress_port: exact; }
        actions = { report; NoAction; }
        const default_action = NoAction();
    }

#define KEEP(N) \
        if (headers.hops[N].isValid()) { \
            metadata.hop_##N = headers.hops[N].switch_id ++ headers.hops[N].queue_packets ++ \
                headers.hops[N].queue_us; \
        }
#define TELL(N) \
        if (metadata.hops > N) { \
            headers.hops[N].setValid(); \
            headers.hops[N].switch_id = metadata.hop_##N[95:64]; \
            headers.hops[N].queue_packets = metadata.hop_##N[63:32]; \
            headers.hops[N].queue_us = metadata.hop_##N[31:0]; \
        }

    apply {
        if (standard.instance_type == INSTANCE_EGRESS_CLONE) {
            headers.report.setValid();
            headers.report.egress_port = metadata.egress_port;
            headers.report.padding = 0;
            headers.report.destination = headers.ethernet.destination;
            headers.report.source = headers.ethernet.source;
            headers.report.hops = metadata.hops;
            headers.ethernet.setInvalid();
            TELL(0)
            TELL(1)
            TELL(2)
            TELL(3)
            truncate(REPORT_BYTES + HOP_BYTES * (bit<32>)metadata.hops);  // remove the frame
        } else if (headers.shim.isValid()) {
            if (headers.shim.hops < MAX_HOPS) {
                identity.apply();
            }
            KEEP(0)
            KEEP(1)
            KEEP(2)
            KEEP(3)
            sinks.apply();
        }
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
