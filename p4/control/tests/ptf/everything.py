# SPDX-License-Identifier: Apache-2.0
"""Tests of everything.p4 in PTF's style: P4Runtime on one side of the switch, packets on others.

Parameters: `address` of the server; `programs`, the directory of everything.json.
"""

from __future__ import annotations

from pathlib import Path

import grpc
import ptf
from nagi_p4runtime.protos import p4r
from ptf import testutils  # type: ignore[attr-defined]
from ptf.base_tests import BaseTest
from served import Session, config_of, read_info


class Everything(BaseTest):
    """With the pipeline set, and nothing in it."""

    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance  # type: ignore[attr-defined]
        programs = Path(testutils.test_param_get("programs"))
        info_path = programs / "everything.p4info.txtpb"
        self.channel = grpc.insecure_channel(testutils.test_param_get("address"))
        self.client = Session(self.channel)
        self.client.set_pipeline(config_of(programs / "everything.json", info_path))
        info = read_info(info_path)
        self.ids = {
            each.preamble.alias: each.preamble.id
            for each in (*info.tables, *info.actions, *info.digests)
        }
        self.dataplane.flush()

    def tearDown(self):
        self.client.close()
        self.channel.close()
        super().tearDown()

    def action(self, name, value):
        call = p4r.Action(action_id=self.ids[name], params=[{"param_id": 1, "value": value}])
        return p4r.TableAction(action=call)

    def route(self, destination, port):
        prefix = {"field_id": 1, "lpm": {"value": bytes(destination), "prefix_len": 32}}
        return p4r.TableEntry(
            table_id=self.ids["routes"], match=[prefix], action=self.action("send", port)
        )

    def let_all_pass(self):
        everybody = p4r.TableEntry(
            table_id=self.ids["classes"], priority=1, action=self.action("classify", b"\1")
        )
        self.client.insert(table_entry=everybody)


class Routes(Everything):
    """Packets leave by the port of their route, unchanged; without a route they are dropped."""

    def runTest(self):  # noqa: N802
        self.let_all_pass()
        self.client.insert(table_entry=self.route((10, 0, 0, 2), b"\2"))
        packet = testutils.simple_udp_packet(ip_dst="10.0.0.2")
        testutils.send_packet(self, 1, packet)
        testutils.verify_packets(self, packet, [2])
        other = testutils.simple_udp_packet(ip_dst="10.0.0.3")
        testutils.send_packet(self, 1, other)
        testutils.verify_no_other_packets(self)
        self.client.modify(table_entry=self.route((10, 0, 0, 2), b"\1"))
        testutils.send_packet(self, 2, packet)
        testutils.verify_packets(self, packet, [1])


class Multicast(Everything):
    def runTest(self):  # noqa: N802
        replicas = [{"port": b"\1"}, {"port": b"\2"}]
        group = {"multicast_group_id": 5, "replicas": replicas}
        self.client.insert(packet_replication_engine_entry={"multicast_group_entry": group})
        self.let_all_pass()
        everywhere = p4r.TableEntry(
            table_id=self.ids["routes"], action=self.action("spread", b"\5")
        )
        self.client.insert(table_entry=everywhere)
        packet = testutils.simple_udp_packet()
        testutils.send_packet(self, 1, packet)
        testutils.verify_packets(self, packet, [1, 2])


class Controller(Everything):
    """A packet goes to the controller, and one comes from it."""

    def runTest(self):  # noqa: N802
        ask = p4r.TableEntry(
            table_id=self.ids["stations"], is_default_action=True, action=self.action("ask", b"\7")
        )
        self.client.modify(table_entry=ask)
        packet = testutils.simple_eth_packet(eth_dst="00:00:00:00:00:0b")
        testutils.send_packet(self, 2, packet)
        told = self.client.receive_next("packet")
        assert told.payload == bytes(packet)
        assert [each.value for each in told.metadata] == [b"\2", b"\7"]
        metadata = [{"metadata_id": 1, "value": b"\1"}, {"metadata_id": 2, "value": b"\0"}]
        self.client.send(packet={"payload": bytes(packet), "metadata": metadata})
        testutils.verify_packets(self, packet, [1])
