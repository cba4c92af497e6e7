// SPDX-License-Identifier: Apache-2.0
//
// Internet checksums (RFC 1071): IPv4 with options verified and updated, TCP and UDP over IPv4 and
// IPv6 with their payload.
#include "wire.p4"

header Options {
    varbit<320> data;
}

struct Headers {
    Ethernet ethernet;
    Ipv4 ipv4;
    Options options;
    Ipv6 ipv6;
    Tcp tcp;
    Udp udp;
}

struct Metadata {
    bit<16> l4_length;
}

parser parsing(packet_in packet, out Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(headers.ipv4);
        verify(headers.ipv4.ihl >= 5, error.HeaderTooShort);
        packet.extract(headers.options, (bit<32>)((bit<9>)(headers.ipv4.ihl - 5) << 5));
        metadata.l4_length = headers.ipv4.total_length - ((bit<16>)headers.ipv4.ihl << 2);
        transition select(headers.ipv4.protocol) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(headers.ipv6);
        metadata.l4_length = headers.ipv6.payload_length;
        transition select(headers.ipv6.next_header) {
            PROTOCOL_TCP: parse_tcp;
            PROTOCOL_UDP: parse_udp;
            default: accept;
        }
    }
    state parse_tcp {
        packet.extract(headers.tcp);
        transition accept;
    }
    state parse_udp {
        packet.extract(headers.udp);
        transition accept;
    }
}

#define IPV4_DATA \
    { headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.tos, headers.ipv4.total_length, \
      headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.fragment_offset, \
      headers.ipv4.ttl, headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination, \
      headers.options.data }
#define TCP_DATA(source_address, destination_address) \
    { source_address, destination_address, 8w0, PROTOCOL_TCP, metadata.l4_length, \
      headers.tcp.source, headers.tcp.destination, headers.tcp.sequence, \
      headers.tcp.acknowledgement, headers.tcp.data_offset, headers.tcp.reserved, \
      headers.tcp.flags, headers.tcp.window, headers.tcp.urgent }
#define UDP_DATA(source_address, destination_address) \
    { source_address, destination_address, 8w0, PROTOCOL_UDP, headers.udp.length, \
      headers.udp.source, headers.udp.destination, headers.udp.length }

control checking(inout Headers headers, inout Metadata metadata) {
    apply {
        verify_checksum(headers.ipv4.isValid(), IPV4_DATA, headers.ipv4.checksum,
                        HashAlgorithm.csum16);
        verify_checksum_with_payload(
            headers.ipv4.isValid() && headers.tcp.isValid(),
            TCP_DATA(headers.ipv4.source, headers.ipv4.destination), headers.tcp.checksum,
            HashAlgorithm.csum16);
        verify_checksum_with_payload(
            headers.ipv6.isValid() && headers.udp.isValid(),
            UDP_DATA(headers.ipv6.source, headers.ipv6.destination), headers.udp.checksum,
            HashAlgorithm.csum16);
    }
}

control ingress(inout Headers headers, inout Metadata metadata,
                inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.checksum_error == 1 ? (Port)2 : (Port)1;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 3;
        }
        // a translator of addresses
        headers.ipv4.source = headers.ipv4.source + 0x01000000;
        headers.ipv4.ttl = headers.ipv4.ttl |-| 1;
        headers.ipv6.destination = headers.ipv6.destination + 1;
        headers.udp.destination = headers.udp.destination + 1;
        headers.tcp.window = headers.tcp.window |+| 0x8000;
    }
}

control egress(inout Headers headers, inout Metadata metadata,
               inout standard_metadata_t standard) {
    apply { }
}

control updating(inout Headers headers, inout Metadata metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(), IPV4_DATA, headers.ipv4.checksum,
                        HashAlgorithm.csum16);
        update_checksum_with_payload(
            headers.ipv4.isValid() && headers.tcp.isValid(),
            TCP_DATA(headers.ipv4.source, headers.ipv4.destination), headers.tcp.checksum,
            HashAlgorithm.csum16);
        update_checksum_with_payload(
            headers.ipv6.isValid() && headers.tcp.isValid(),
            TCP_DATA(headers.ipv6.source, headers.ipv6.destination), headers.tcp.checksum,
            HashAlgorithm.csum16);
        update_checksum_with_payload(
            headers.ipv4.isValid() && headers.udp.isValid() && headers.udp.checksum != 0,
            UDP_DATA(headers.ipv4.source, headers.ipv4.destination), headers.udp.checksum,
            HashAlgorithm.csum16);
        update_checksum_with_payload(
            headers.ipv6.isValid() && headers.udp.isValid(),
            UDP_DATA(headers.ipv6.source, headers.ipv6.destination), headers.udp.checksum,
            HashAlgorithm.csum16);
    }
}

control deparsing(packet_out packet, in Headers headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(parsing(), checking(), ingress(), egress(), updating(), deparsing()) main;
