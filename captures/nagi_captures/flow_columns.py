# SPDX-License-Identifier: Apache-2.0
"""The columns of a table of connections.

captures/native/flows.hpp defines how packets are classified, captures/native/tracking.hpp where a
connection begins and ends. Data packets, unique bytes, retransmissions, duplicate ACKs, zero
windows and RTT samples are those of tcptrace and tshark where these agree; tests/test_tools.py
documents where they do not.
"""

from __future__ import annotations

_RTT = {
    "count": "samples",
    "min": "smallest, ns",
    "mean": "mean, ns",
    "median": "median, ns (within 1 %, as the percentiles)",
    "p95": "95th percentile, ns",
    "p99": "99th percentile, ns",
    "max": "largest, ns",
}

# One row per direction of a connection: row 2 x connection + direction, even if one direction has
# no packet. Direction 0 is that of the SYN if it was captured, else of the first packet. UDP
# packets between two address-and-port pairs are a connection, too; columns of TCP are 0 or missing
# there, and every payload byte counts as delivered for the first time.
FLOW_COLUMNS: dict[str, str] = {
    "connection": "number, from 0 in the order of their first packets",
    "direction": "0 or 1",
    "protocol": "tcp or udp (text)",
    "source": "address (text)",
    "source_port": "",
    "destination": "address (text)",
    "destination_port": "",
    "first_ns": "time of the first packet; 0 without one",
    "last_ns": "time of the last packet; 0 without one",
    "first_data_ns": "time of the first packet with payload; 0 without one",
    "last_data_ns": "time of the last packet with payload that had not been acknowledged before; 0 "
    "without one",
    "ip_bytes_to_data": "bytes of IP packets up to last_data_ns, headers included",
    "uncaptured_bytes": "payload bytes that the other side acknowledged, but that no captured "
    "packet has",
    "packets": "all packets",
    "ip_bytes": "bytes of IP packets, headers included",
    "payload_bytes": "bytes of TCP or UDP payload, with repeated bytes, without those of "
    "keep-alives, window probes and RSTs",
    "data_packets": "packets with such payload",
    "first_time_bytes": "payload bytes in no earlier packet of this direction and capture",
    "retransmitted_packets": "packets whose payload had been captured before, all or part of it, "
    "without keep-alives and window probes",
    "retransmitted_bytes": "payload bytes of these packets that had been captured before",
    "out_of_order_packets": "packets with payload below the highest byte captured so far, none of "
    "whose bytes had been captured (RFC 4737: reordered; or a retransmission of bytes that were "
    "lost before the point of capture)",
    "packets_inside": "as the column without _inside, of packets with start_ns <= time < end_ns, "
    "like the following columns",
    "ip_bytes_inside": "",
    "payload_bytes_inside": "",
    "data_packets_inside": "",
    "first_time_bytes_inside": "",
    "retransmitted_packets_inside": "",
    "retransmitted_bytes_inside": "",
    "out_of_order_packets_inside": "",
    "duplicate_acks": "RFC 5681 section 2: no payload, no SYN or FIN, the highest acknowledgement "
    "again, the same window, while data of the other direction is outstanding",
    "sack_packets": "packets with SACK blocks",
    "sack_blocks": "SACK blocks (RFC 2018), DSACK included",
    "keep_alives": "0 or 1 bytes from one below the next to send, all acknowledged (RFC 9293 "
    "section 3.8.4)",
    "zero_window_packets": "packets that advertise a window of 0, without RST",
    "window_probes": "1 byte beyond, or 0 or 1 bytes from one below the next to send, while the "
    "other side's window is 0 (RFC 9293 section 3.8.6.1). The byte beyond counts as data once it "
    "is acknowledged",
    "captured_twice": "copies of captured packets, from another point of capture or from frames "
    "that the link layer sent again; no other column counts them. A copy agrees in all of IP and "
    "TCP, within 4 s if the sender counts identifications or hops are fewer; else within 0.2 s if "
    "it is a SYN or its frame is marked (802.11: Retry), and with payload within 0.1 ms",
    "mss": "option of the SYN, bytes; -1 if not captured",
    "window_scale": "option of the SYN, bits; -1 if not captured",
    "sack_permitted": "option of the SYN (bool)",
    "timestamps": "whether a packet has the timestamps option (bool)",
    "syn_packets": "",
    "fin_packets": "",
    "rst_packets": "",
    "complete_handshake": "whether SYN, SYN-ACK and its ACK were captured (bool, same in both "
    "rows)",
    "handshake_rtt_ns": "time from SYN to the ACK of the SYN-ACK (same in both rows); NaN if one "
    "of the three was not captured, or SYN or SYN-ACK was repeated before it was answered",
    "captured_at": "estimated point of capture on this direction's path (text): source, between, "
    "destination; empty if not known",
    **{f"rtt_sequence_{name}_ns".replace("count_ns", "count"): text for name, text in _RTT.items()},
    **{
        f"rtt_timestamps_{name}_ns".replace("count_ns", "count"): text
        for name, text in _RTT.items()
    },
    "in_flight_mean_bytes": "mean over data packets of the bytes sent beyond the highest "
    "acknowledgement, those of the packet included",
    "in_flight_max_bytes": "largest of these numbers",
    "window_min_bytes": "smallest window that this side advertised (scaled, without SYN and RST); "
    "not known without the SYNs, which contain the scale",
    "window_mean_bytes": "mean over packets",
    "window_max_bytes": "largest window",
}
# rtt_*, in_flight_* and window_* are over packets with start_ns <= time < end_ns (for the RTT, the
# packet that acknowledges). They are float64, NaN without samples; rtt_*_count are int64.
# rtt_sequence: the time from a segment to the first acknowledgement of its last byte. Each
# acknowledgement gives one sample, of the newest segment that it covers. Retransmitted segments
# give none, nor do higher segments that were sent before the retransmission (Karn's rule: their
# acknowledgement waited for it).
# rtt_timestamps: the time from the lowest segment with a TSval to the first packet that echoes it
# and acknowledges that segment. Each TSval gives one sample (RFC 7323 section 4.1), or none if
# bytes were sent twice with the same TSval.
# Neither is known for a connection with copies of packets more than 1 ms apart: they were captured
# at several points.
# Both RTTs are from the point of capture to the receiver of this direction's data and back.
# captured_at: estimated from the times from the point of capture to either end and back, each the
# smaller of the handshake's (SYN to SYN-ACK, SYN-ACK to ACK) and the smallest RTT by sequence. It
# is `source` if less than a tenth of their sum is towards the source. It is not known without both
# times, or if their sum is less than 0.2 ms.
