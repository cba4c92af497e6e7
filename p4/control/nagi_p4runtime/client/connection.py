# SPDX-License-Identifier: Apache-2.0
"""The connection to a P4Runtime server.

The package finsy implements the protocol with asyncio, whose event loop runs in a thread here.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import finsy
import grpc
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.p4schema import P4Schema
from google.protobuf import text_format
from nagi_p4.operations import (
    ALREADY_EXISTS,
    FAILED_PRECONDITION,
    INVALID,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    UNSUPPORTED,
    Refused,
)

from nagi_p4runtime.protos import p4i, p4r

MAX_UPDATES = 500  # per Write, which is then far below gRPC's default limit of 4 MiB
_CODES = {
    GRPCStatusCode.INVALID_ARGUMENT: INVALID,
    GRPCStatusCode.OUT_OF_RANGE: INVALID,
    GRPCStatusCode.NOT_FOUND: NOT_FOUND,
    GRPCStatusCode.ALREADY_EXISTS: ALREADY_EXISTS,
    GRPCStatusCode.RESOURCE_EXHAUSTED: RESOURCE_EXHAUSTED,
    GRPCStatusCode.FAILED_PRECONDITION: FAILED_PRECONDITION,
    GRPCStatusCode.UNIMPLEMENTED: UNSUPPORTED,
}
_PRIMARY_ELECTION_ID = 10
_READER_ELECTION_ID = 1  # the smallest possible, for clients that only read

Result = TypeVar("Result")
# An argument of finsy's Switch.write(): +entity inserts, ~entity modifies, -entity deletes.
Update = Any

# Do not print finsy's log, because finsy raises its errors as well.
logging.getLogger("finsy").addHandler(logging.NullHandler())


class Connection:
    """A connection to a P4Runtime server.

    Args:
        address: Address of the server: "127.0.0.1:9559" or "unix:PATH".
        device_id: Id of the device.
        program: File with the pipeline to set; None to use the running pipeline.
        p4info: File with the P4Info of the pipeline; None to read it from the server.
        is_primary: Whether to become the primary client.
        timeout_s: Timeout of each call, in seconds.

    Raises:
        OSError: No server answers at `address` within `timeout_s`, or a file cannot be read.
        Refused: Another client is primary, the switch refused the pipeline, there is no running
            pipeline, or `p4info` is invalid.
    """

    def __init__(
        self,
        address: str,
        device_id: int,
        program: Path | None,
        p4info: Path | None,
        is_primary: bool,
        timeout_s: float,
    ) -> None:
        self._address = address
        self._device_id = device_id
        self._timeout_s = timeout_s
        self._tasks: list[asyncio.Task[None]] = []  # started by start_task()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._is_open = False
        try:
            self.wait(self._open(program, p4info, is_primary))
        except BaseException:
            self._end_thread()
            raise

    @property
    def finsy_switch(self) -> finsy.Switch:
        """The finsy.Switch of this connection, for coroutines that wait() or start_task() runs."""
        return self._switch

    @property
    def p4info(self) -> P4Schema:
        """The P4Info of the pipeline, as a schema of finsy."""
        return self._switch.p4info

    async def _open(self, program: Path | None, p4info: Path | None, is_primary: bool) -> None:
        """Connect, become primary if `is_primary`, and set the pipeline if `program` is given."""
        info = await self._read_running_p4info() if p4info is None else _read_p4info(p4info)
        config = p4r.ForwardingPipelineConfig(p4info=info)
        _shorten_aliases(info)
        with tempfile.TemporaryDirectory(prefix="nagi-p4runtime-") as directory:
            file = Path(directory) / "p4info.txtpb"
            file.write_text(text_format.MessageToString(info), encoding="utf-8")
            options = finsy.SwitchOptions(
                p4info=file,
                device_id=self._device_id,
                initial_election_id=_PRIMARY_ELECTION_ID if is_primary else _READER_ELECTION_ID,
            )
            self._switch = finsy.Switch("switch", self._address, options)
        await self._switch.__aenter__()
        self._is_open = True
        if is_primary and not self._switch.is_primary:
            await self._leave()
            raise Refused(
                f"{self._address}: another controller is the primary client of this server; end "
                "that controller, or lower its election id",
                FAILED_PRECONDITION,
            )
        if program is not None:
            config.p4_device_config = program.read_bytes()
            try:
                await self._set_pipeline(config)
            except BaseException:
                await self._leave()
                raise

    async def _set_pipeline(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Set the pipeline.

        finsy's own method is not used, because it does not report why a switch refuses a pipeline.
        """
        election_id = self._switch.election_id
        async with P4Client(self._address, wait_for_ready=False) as client:
            await client.request(
                p4r.SetForwardingPipelineConfigRequest(
                    device_id=self._device_id,
                    election_id=p4r.Uint128(
                        high=election_id >> 64, low=election_id & ((1 << 64) - 1)
                    ),
                    action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
                    config=config,
                )
            )

    async def _read_running_p4info(self) -> p4i.P4Info:
        """Read the P4Info of the running pipeline from the server.

        Raises:
            Refused: The switch runs no pipeline.
        """
        async with P4Client(self._address, wait_for_ready=False) as client:
            answer = await client.request(
                p4r.GetForwardingPipelineConfigRequest(
                    device_id=self._device_id,
                    response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
                )
            )
        if not answer.config.HasField("p4info"):
            raise Refused(
                f"{self._address}: the switch runs no pipeline; give a pipeline and its P4Info",
                FAILED_PRECONDITION,
            )
        info: p4i.P4Info = answer.config.p4info
        return info

    async def _leave(self) -> None:
        """End the tasks that start_task() started, and disconnect."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if self._is_open:
            self._is_open = False
            await self._switch.__aexit__(None, None, None)

    def close(self) -> None:
        if self._thread.is_alive():
            try:
                self.wait(self._leave())
            finally:
                self._end_thread()

    def _end_thread(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop)
        self._thread.join(self._timeout_s)
        if not self._loop.is_running():
            self._loop.close()

    async def _end_tasks(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._loop.stop()

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background until the connection closes.

        Call this method only from a coroutine that wait() runs.
        """
        self._tasks.append(self._loop.create_task(work))

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine and return its result.

        Raises:
            Refused: The switch refused a request.
            OSError: The connection is closed or lost, or the result takes longer than the timeout.
        """
        if not self._thread.is_alive():
            work.close()
            raise OSError(f"{self._address}: the connection has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(self._timeout_s)
        except TimeoutError:
            future.cancel()
            raise OSError(
                f"{self._address}: no answer by P4Runtime in {self._timeout_s:g} s"
            ) from None
        except P4ClientError as error:
            self._raise_client_error(error)
        except grpc.RpcError as error:
            raise OSError(f"{self._address}: {error}") from None
        except ValueError as error:  # finsy checks names and widths itself
            raise Refused(str(error), INVALID) from None

    def _raise_client_error(self, error: P4ClientError) -> NoReturn:
        """Raise OSError if no server answered, otherwise Refused, for an error of finsy.

        `index` of the Refused error is the index of the first update that the switch refused.
        """
        if error.code in (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED):
            text = error.message or error.code.name
            raise OSError(
                f"{self._address}: no P4Runtime server answers at this address: {text}"
            ) from None
        for index, detail in error.details.items():
            text = detail.message or detail.canonical_code.name
            raise Refused(
                f"{self._address}: {text}", _CODES.get(detail.canonical_code), index
            ) from None
        text = error.message or error.code.name
        raise Refused(f"{self._address}: {text}", _CODES.get(error.code)) from None

    def write(self, updates: Sequence[Update]) -> None:
        """Write updates, in Writes of at most MAX_UPDATES updates.

        Raises:
            Refused: An update was refused. `index` of the error is the index of the update in
                `updates`, or None if it is unknown. Other updates may have been performed.
        """
        for start in range(0, len(updates), MAX_UPDATES):
            try:
                self.wait(self._switch.write(updates[start : start + MAX_UPDATES]))
            except Refused as refused:
                index = None if refused.index is None else refused.index + start
                raise Refused(str(refused), refused.code, index) from None

    def read(self, pattern: Any) -> list[Any]:
        """Read the entities that match a pattern.

        Args:
            pattern: An entity of finsy. Its missing fields match everything.
        """

        async def read_all() -> list[Any]:
            entities: Any = self._switch.read(pattern)  # finsy's overloads do not cover Any
            return [each async for each in entities]

        return self.wait(read_all())


def _read_p4info(path: Path) -> p4i.P4Info:
    try:
        info: p4i.P4Info = text_format.Parse(path.read_text(encoding="utf-8"), p4i.P4Info())
        return info
    except (UnicodeDecodeError, text_format.ParseError) as error:
        raise Refused(f"{path}: not a P4Info in text format: {error}", INVALID) from None


def _shorten_aliases(info: p4i.P4Info) -> None:
    """Replace dots in the aliases of actions, because finsy 0.30 accepts one dot at most.

    p4c makes aliases with two dots for actions of a control that is instantiated twice. The names
    of the actions do not change.
    """
    for action in info.actions:
        if action.preamble.alias.count(".") > 1:
            action.preamble.alias = action.preamble.alias.replace(".", "_")
