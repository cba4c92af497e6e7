#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of packet_port on a veth pair and a TUN interface, in a network namespace. Needs root."""

import ctypes
import os
import socket
import struct
import subprocess
import sys
import time
import unittest

import pmt
from gnuradio import blocks, gr, gr_unittest, nagi
from pdus import open_pdu, pdu

CLONE_NEWNET = 0x40000000
ETHERTYPE = 0x88B5  # for experiments (IEEE 802): nothing else speaks it
MS = 10**6


def setUpModule():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root, for a network namespace")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def frame(payload, ethertype=ETHERTYPE):
    return (
        b"\xff" * 6 + b"\x02\0\0\0\0\x01" + struct.pack("!H", ethertype) + payload.ljust(60, b"\0")
    )


class PortTest(gr_unittest.TestCase):
    def start(self, port):
        self.sink = blocks.message_debug(False)
        self.flowgraph = gr.top_block(catch_exceptions=False)
        self.flowgraph.msg_connect(port, "frames", self.sink, "store")
        self.flowgraph.start()
        self.addCleanup(self.stop)

    def stop(self):
        self.flowgraph.stop()
        self.flowgraph.wait()

    def send(self, port, data, **meta):
        port.to_basic_block()._post(pmt.intern("frames"), pdu(meta, data))

    def receive(self, count, is_wanted):
        """Return the first `count` PDUs whose data `is_wanted` accepts."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pdus = [open_pdu(self.sink.get_message(i)) for i in range(self.sink.num_messages())]
            pdus = [(meta, data) for meta, data in pdus if is_wanted(data)]
            if len(pdus) >= count:
                return pdus
            time.sleep(0.001)
        self.fail(f"{len(pdus)} of {count} frames came")


class AfPacket(PortTest):
    def setUp(self):
        ip("link", "add", "left", "type", "veth", "peer", "name", "right")
        self.addCleanup(subprocess.run, ["ip", "link", "del", "left"], stderr=subprocess.DEVNULL)
        for name in ("left", "right"):
            ip("link", "set", name, "up")
        self.peer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self.peer.bind(("right", ETHERTYPE))
        self.peer.settimeout(20)
        self.addCleanup(self.peer.close)
        self.port = nagi.packet_port("left")
        self.start(self.port)

    @staticmethod
    def is_ours(data):
        return data[12:14] == struct.pack("!H", ETHERTYPE)

    def test_frames_come_in_with_the_instant(self):
        before = time.monotonic_ns()
        frames = [frame(bytes([i])) for i in range(100)]
        for one in frames:
            self.peer.send(one)
        pdus = self.receive(100, self.is_ours)
        self.assertEqual([data for _, data in pdus], frames)
        arrived = [meta["arrived_ns"] for meta, _ in pdus]
        # Stamps are the wall clock's, brought to the monotonic clock when they are read.
        self.assertGreater(arrived[0], before - 500 * MS)
        self.assertLess(arrived[-1], time.monotonic_ns() + 500 * MS)
        self.assertGreaterEqual(self.port.received(), 100)
        self.assertEqual(self.port.discarded(), 0)

    def test_frames_go_out_and_do_not_come_back(self):
        for i in range(50):
            self.send(self.port, frame(bytes([i])))
        self.assertEqual(
            [self.peer.recv(2000) for _ in range(50)], [frame(bytes([i])) for i in range(50)]
        )
        self.peer.send(frame(b"from the peer"))
        self.assertEqual(self.receive(1, self.is_ours)[0][1], frame(b"from the peer"))
        self.assertEqual((self.port.sent(), self.port.send_failures()), (50, 0))

    def test_frames_wait_until_they_are_due(self):
        now = time.monotonic_ns()
        self.send(self.port, frame(b"last"), due_ns=now + 200 * MS)
        self.send(self.port, frame(b"middle"), due_ns=now + 100 * MS)
        self.send(self.port, frame(b"first"), due_ns=now - 100 * MS)
        for payload, due_ms in ((b"first", 0), (b"middle", 100), (b"last", 200)):
            self.assertEqual(self.peer.recv(2000), frame(payload))
            self.assertGreaterEqual(time.monotonic_ns(), now + due_ms * MS)

    def test_what_the_kernel_does_not_take_is_counted(self):
        self.send(self.port, frame(bytes(1600)))
        self.send(self.port, frame(bytes(5000)))
        self.assertTrue(self.waitFor(lambda: self.port.send_failures() == 2))

    def test_ends_with_the_interface(self):
        ip("link", "del", "left")
        self.flowgraph.wait()  # would never return


class Tun(PortTest):
    def setUp(self):
        self.port = nagi.packet_port("tun7", "tun")
        ip("addr", "add", "10.9.0.1/24", "dev", "tun7")
        ip("link", "set", "tun7", "up")
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("10.9.0.1", 7000))
        self.udp.settimeout(20)
        self.addCleanup(self.udp.close)
        self.start(self.port)

    def test_packets_both_ways(self):
        before = time.monotonic_ns()
        self.udp.sendto(b"out", ("10.9.0.2", 7001))
        ((meta, data),) = self.receive(1, lambda data: data[9:10] == b"\x11")
        self.assertEqual((data[0] >> 4, data[28:]), (4, b"out"))
        self.assertLess(before, meta["arrived_ns"])
        # Back: addresses and ports the other way round; no UDP checksum.
        addresses = data[16:20] + data[12:16]
        back = data[:12] + addresses + data[22:24] + data[20:22] + data[24:26] + b"\0\0" + b"in!"
        self.send(self.port, back)
        self.assertEqual(self.udp.recv(100), b"in!")
        self.send(self.port, b"\0 no IP packet")
        self.assertTrue(self.waitFor(lambda: self.port.send_failures() == 1))


class Refused(gr_unittest.TestCase):
    def test_what_is_wrong_and_what_to_do(self):
        for name in ("none-such", "longer-than-names-may-be"):
            with self.assertRaisesRegex(RuntimeError, f"{name}.*ip link"):
                nagi.packet_port(name)
        with self.assertRaisesRegex(ValueError, "af_xdp"):
            nagi.packet_port("lo", "af_xdp")
        with self.assertRaisesRegex(RuntimeError, "packet_port"):
            nagi.packet_port("longer-than-names-may-be", "tun")

    def test_without_the_capability(self):
        for name, kind, cure in (
            ("lo", "af_packet", "CAP_NET_RAW"),
            ("tun8", "tun", "CAP_NET_ADMIN"),
        ):
            code = f"from gnuradio import nagi; nagi.packet_port({name!r}, {kind!r})"
            drop = ["setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-all"]
            done = subprocess.run(
                [*drop, sys.executable, "-c", code], capture_output=True, text=True, check=False
            )
            self.assertIn(cure, done.stderr)


if __name__ == "__main__":
    unittest.main()
