# SPDX-License-Identifier: Apache-2.0
"""bmv2's simple_switch, controlled over its Thrift server (simple_switch_client.py).

Limits of bmv2, and how operations deal with them:
- rates in bit/s: refused. `compute_packet_rate` converts them for packets of one size, because bmv2
  counts packets;
- depths in bytes, overhead: refused. A depth in packets is per priority, as in nagi-switch;
- several operations as one: they are performed one by one. The first refused operation ends the
  batch, and the operations before it stay performed; the error says how many those were;
- another pipeline at run time: only if simple_switch was started with --enable-swap. A pipeline
  that it cannot run ends it, and nothing can check the pipeline before;
- hits of entries, clone sessions of another controller: simple_switch does not report them;
- truncated clones: refused;
- packets from and to the controller: through the other end of the CPU port's interface;
- counts of packets that queues dropped: not available;
- a seed for random(): not available, so runs do not repeat.

simple_switch's Thrift server listens on all addresses: nagi/backends/switch/host/bmv2.py starts it
so that only its own host reaches it.
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

ENDLESS = 1_000_000  # packets: the depth of a queue that is to have no limit


def compute_packet_rate(rate_bps: int, packet_bytes: int, overhead_bytes: int = 0) -> int:
    """Return the packets per second that make a rate of `rate_bps`, rounded; at least 1.

    Args:
        rate_bps: The rate, in bit/s.
        packet_bytes: Size of every packet.
        overhead_bytes: Bytes per packet that count against the rate, but are not in the packet.
    """
    return max(1, round(rate_bps / (8 * (packet_bytes + overhead_bytes))))


class SimpleSwitch(Switch):
    """A connection to a running simple_switch.

    Args:
        notifications: Path of the socket where it publishes digests and idle entries (its option
            --notifications-addr ipc://PATH); None if it does not.
        port: Port of its Thrift server on this host.
        client: Directory of bmv2's Python modules; None if Python finds them.
        cpu_interface: The interface at the other end of its CPU port; None if it has none.

    Raises:
        OSError: No simple_switch listens at `port`.
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
        """Wall-clock time at which the switch's clock was 0, exact to about a millisecond."""
        before = time.time_ns()
        elapsed: int = self._connection.switch.get_time_elapsed_us()
        return (before + time.time_ns()) // 2 - elapsed * 1000

    def perform_all(self, operations: Sequence[Operation]) -> list[Answer]:
        done = []
        for index, operation in enumerate(operations):
            try:
                done.append(self.perform(operation))
            except Refused as refused:
                raise Refused(
                    f"operation {index} of {len(operations)}: {refused}; bmv2 cannot undo the "
                    "operations before it: restart it",
                    refused.code,
                    index,
                ) from None
        return done

    def perform(self, operation: Operation) -> Answer:
        """Perform one operation by the function that _OPERATIONS has for it.

        Raises:
            Refused: There is no such operation, its keys are wrong, or simple_switch refused it.
            OSError: simple_switch is gone.
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
    """Check that a text is a pipeline's JSON. simple_switch itself can check nothing."""
    _parse_pipeline(program, name)


def set_pipeline(connection: Connection, program: str, name: str) -> None:
    """Replace the pipeline and all its state."""
    pipeline = _parse_pipeline(program, name)
    try:
        connection.standard.bm_load_new_config(program)
        connection.standard.bm_swap_configs()
    except connection.modules["types"].InvalidSwapOperation as error:
        reason = name_error_code(connection.modules, error)
        raise Refused(
            f"{name}: simple_switch does not take another program ({reason}); start it with "
            "--enable-swap",
            FAILED_PRECONDITION,
        ) from None
    connection.pipeline = pipeline
    # simple_switch keeps multicast groups and clone sessions.
    for group in traffic.read_multicast(connection)["groups"]:
        traffic.delete_multicast(connection, group["group"])
    for session in tuple(connection.sessions):
        traffic.delete_mirror(connection, session)


def read_pipeline(connection: Connection) -> Answer:
    """Return the JSON of the running pipeline."""
    return {"name": "", "program": connection.standard.bm_get_config()}


def _parse_pipeline(program: str, name: str) -> Pipeline:
    try:
        return Pipeline(json.loads(program))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(
            f"{name}: not a program for bmv2 ({type(error).__name__}: {error}); compile it "
            "with p4c-bm2-ss",
            INVALID,
        ) from None


# The function that performs an operation. Its parameters are the operation's keys, and it returns
# the operation's answer without "ok", or None.
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
