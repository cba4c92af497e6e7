# SPDX-License-Identifier: Apache-2.0
"""bmv2's simple_switch, controlled through its Thrift server (simple_switch_client.py).

How operations deal with the limits of bmv2:
- Rates in bit/s are refused, because bmv2 limits packets per second. `compute_packet_rate` converts
  a rate in bit/s for packets of one size.
- Depths in bytes and an overhead are refused. A depth in packets applies to each priority, as in
  nagi-switch.
- The operations of a batch are performed one by one. The first refused operation ends the batch.
  The operations before the refused one remain in effect; the error gives the index of the refused
  one.
- The pipeline can be replaced only if simple_switch was started with --enable-swap. simple_switch
  exits if it cannot run the new pipeline, and it has no function that checks a pipeline.
- Hits of entries, and clone sessions of other controllers, are not reported.
- Truncated clones are refused.
- Packets from and to the controller pass through the other end of the CPU port's interface.
- Counts of packets that queues dropped are not available.
- random() has no seed, so runs cannot be repeated exactly.

The Thrift server listens on all addresses. nagi/backends/switch/host/bmv2.py starts simple_switch
so that only processes on its own host can connect.
"""

from __future__ import annotations

import inspect
import json
import time
from typing import Callable, Optional, Sequence

from nagi_p4 import simple_switch_answers as answers
from nagi_p4 import simple_switch_events as events
from nagi_p4 import simple_switch_state as state
from nagi_p4 import simple_switch_tables as tables
from nagi_p4 import simple_switch_traffic as traffic
from nagi_p4.operations import (
    FAILED_PRECONDITION,
    INVALID,
    UNSUPPORTED,
    Answer,
    Operation,
    Refused,
)
from nagi_p4.simple_switch_client import DEFAULT_PORT, Connection, name_error_code
from nagi_p4.simple_switch_pipeline import Pipeline
from nagi_p4.switch import Switch

ENDLESS = 1_000_000  # the depth, in packets, of a queue without a limit


def compute_packet_rate(rate_bps: int, packet_bytes: int, overhead_bytes: int = 0) -> int:
    """Convert a rate in bit/s to packets per second, rounded, but at least 1.

    Args:
        rate_bps: The rate in bit/s.
        packet_bytes: Size of every packet.
        overhead_bytes: Bytes that the rate counts for each packet in addition to `packet_bytes`.
    """
    return max(1, round(rate_bps / (8 * (packet_bytes + overhead_bytes))))


class SimpleSwitch(Switch):
    """A connection to a running simple_switch.

    Args:
        notifications: Path of the Unix socket where simple_switch publishes digests and idle
            entries (its option --notifications-addr ipc://PATH); None to receive none.
        port: TCP port of the Thrift server on this host.
        client: Directory of bmv2's Python modules; None if they are on Python's path.
        cpu_interface: The interface at the other end of the veth pair of the CPU port; None if the
            switch has no CPU port.

    Raises:
        OSError: No simple_switch listens at `port`, or `notifications` or `cpu_interface` cannot
            be opened.
        Refused: bmv2's Python modules are not installed.
    """

    target = "bmv2"
    is_atomic = False

    def __init__(
        self,
        notifications: Optional[str] = None,
        port: int = DEFAULT_PORT,
        client: Optional[str] = None,
        cpu_interface: Optional[str] = None,
    ) -> None:
        self._connection = Connection(port, client, notifications, cpu_interface)

    def close(self) -> None:
        self._connection.close()

    @property
    def epoch_realtime_ns(self) -> int:
        """The instant in ns since the Unix epoch, to about 1 ms, when the switch's clock was 0."""
        before = time.time_ns()
        elapsed: int = self._connection.switch.get_time_elapsed_us()
        return (before + time.time_ns()) // 2 - elapsed * 1000

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        result = []
        for index, operation in enumerate(operations):
            try:
                result.append(self.perform(operation))
            except Refused as refused:
                raise Refused(
                    f"operation {index} of {len(operations)}: {refused}; bmv2 cannot undo the "
                    "previous operations; restart simple_switch",
                    refused.code,
                    index,
                ) from None
        return result

    def perform(self, operation: Operation) -> Answer:
        """Perform one operation by its function in _OPERATIONS.

        Raises:
            Refused: bmv2 has no such operation, the operation has wrong keys, or simple_switch
                refused the operation.
            OSError: The connection to simple_switch is lost.
        """
        arguments = dict(operation)
        op = arguments.pop("op")
        function = _OPERATIONS.get(str(op))
        if function is None:
            raise Refused(f"there is no operation {op} for bmv2", UNSUPPORTED)
        try:
            inspect.signature(function).bind(self._connection, **arguments)
        except TypeError as error:
            raise Refused(f"{op}: {error}", INVALID) from None
        modules = self._connection.modules
        try:
            answer = function(self._connection, **arguments)
        except Refused:
            raise
        except modules["transport"].TTransportException as error:
            raise OSError(f"simple_switch is gone: {error}") from None
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            reason = name_error_code(modules, error)
            raise Refused(
                f"{op}: simple_switch refused it: {reason}", answers.CODES.get(reason)
            ) from None
        return {"ok": True, **(answer or {})}


def check_pipeline(connection: Connection, program: str, name: str) -> None:
    """Check that `program` is the JSON of a pipeline.

    It is not certain that simple_switch can run the pipeline, because simple_switch has no function
    for such a check.
    """
    _parse_pipeline(program, name)


def set_pipeline(connection: Connection, program: str, name: str) -> None:
    """Replace the pipeline, and delete the state of the old one.

    The clone sessions that other clients added remain.

    Raises:
        Refused: `program` is not the JSON of a pipeline, or simple_switch was started without
            --enable-swap.
    """
    pipeline = _parse_pipeline(program, name)
    try:
        connection.standard.bm_load_new_config(program)
        connection.standard.bm_swap_configs()
    except connection.modules["types"].InvalidSwapOperation as error:
        reason = name_error_code(connection.modules, error)
        raise Refused(
            f"{name}: simple_switch refuses to replace its pipeline ({reason}); start "
            "simple_switch with --enable-swap",
            FAILED_PRECONDITION,
        ) from None
    connection.pipeline = pipeline
    # A swap does not delete multicast groups and clone sessions.
    for group in traffic.read_multicast(connection)["groups"]:
        traffic.delete_multicast(connection, group["group"])
    for session in tuple(connection.sessions):
        traffic.delete_mirror(connection, session)


def read_pipeline(connection: Connection) -> Answer:
    """Return the running pipeline as {"name": "", "program": JSON}. bmv2 does not store a name."""
    return {"name": "", "program": connection.standard.bm_get_config()}


def _parse_pipeline(program: str, name: str) -> Pipeline:
    try:
        return Pipeline(json.loads(program))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{name}: not the JSON of a program for bmv2 ({type(error).__name__}: {error}); "
            "compile the program with p4c-bm2-ss",
            INVALID,
        ) from None


# The function that performs each operation. The parameters of a function are the keys of the
# operation. A function returns the answer without "ok", or None if the answer is only "ok".
_OPERATIONS: dict[str, Callable[..., Optional[Answer]]] = {
    "table_add": tables.add_entry,
    "table_modify": tables.modify_entry,
    "table_delete": tables.delete_entry,
    "table_clear": tables.clear_table,
    "table_default": tables.set_default,
    "table_read": tables.read_entries,
    "default_read": tables.read_default,
    "member_add": tables.add_member,
    "member_modify": tables.modify_member,
    "member_delete": tables.delete_member,
    "member_read": tables.read_members,
    "group_create": tables.create_group,
    "group_delete": tables.delete_group,
    "group_add_member": tables.add_to_group,
    "group_remove_member": tables.remove_from_group,
    "group_read": tables.read_groups,
    "register_read": state.read_register,
    "register_write": state.write_register,
    "register_reset": state.reset_register,
    "counter_read": state.read_counter,
    "counter_write": state.write_counter,
    "counter_reset": state.reset_counter,
    "meter_rates": state.set_meter_rates,
    "meter_read": state.read_meter,
    "value_set_add": state.add_to_value_set,
    "value_set_clear": state.clear_value_set,
    "value_set_read": state.read_value_set,
    "mirror_add": traffic.add_mirror,
    "mirror_delete": traffic.delete_mirror,
    "mirror_read": traffic.read_mirrors,
    "multicast_create": traffic.create_multicast,
    "multicast_delete": traffic.delete_multicast,
    "multicast_read": traffic.read_multicast,
    "queue_set": traffic.set_queue,
    "digests": events.read_digests,
    "events": events.read_events,
    "packet_out": events.send_packet_out,
    "pipeline_check": check_pipeline,
    "pipeline_set": set_pipeline,
    "pipeline_read": read_pipeline,
}
