# SPDX-License-Identifier: Apache-2.0
"""The one device that is served: its switch, its forwarding pipeline, and what clients write and
read. Requests are taken one at a time, so that a Write is seen whole or not at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from nagi_p4.operations import Answer, Operation, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime import errors
from nagi_p4runtime.errors import Code, P4Error, invalid
from nagi_p4runtime.memory import Memory
from nagi_p4runtime.p4info import P4Info
from nagi_p4runtime.protos import p4i, p4r
from nagi_p4runtime.reads import Reader, Responses
from nagi_p4runtime.roles import EVERYTHING, Rights, id_of
from nagi_p4runtime.updates import MODIFY, Plan, Planner

_ROLLED_BACK = "not done, because another update of the batch was refused"
_NO_PIPELINE = (
    "there is no forwarding pipeline; set one by SetForwardingPipelineConfig, or start the server "
    "with --p4info"
)


class BatchError(Exception):
    """Of a Write or Read: an error or None for each update or request."""

    def __init__(self, errors: Sequence[P4Error | None]) -> None:
        super().__init__(f"{len(errors)} updates or requests")
        self.errors = errors


@dataclass
class Pipeline:
    """A forwarding pipeline that runs, or waits for COMMIT."""

    config: p4r.ForwardingPipelineConfig
    info: P4Info
    memory: Memory = field(default_factory=Memory)


class Device:
    """`lock`: held while the switch is asked; whoever wants a Write to be over takes it."""

    def __init__(self, switch: Switch) -> None:
        self.lock = threading.Lock()
        self._switch = switch
        self.pipeline: Pipeline | None = None
        self._saved: Pipeline | None = None
        self._waiting: list[p4r.Update] = []  # those since VERIFY_AND_SAVE

    def adopt(self, p4info: p4i.P4Info) -> None:
        """The program that runs already. Raises P4Error if it is not the P4Info's, Refused if the
        switch cannot tell."""
        text = self._switch.read_pipeline()
        info = P4Info(p4info)
        info.check(json.loads(text))
        config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=text.encode())
        self.pipeline = Pipeline(config, info)
        reader = Reader(info, self.pipeline.memory, self._switch, Responses())
        for profile in info.profiles.values():
            reader.adopt(profile)

    # Forwarding pipelines. The lock is the caller's.

    def verify(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        """Raises P4Error if the switch cannot run it."""
        if not config.p4_device_config:
            raise invalid("no p4_device_config; give the JSON that p4c makes for bmv2")
        try:
            program = json.loads(config.p4_device_config)
        except ValueError as error:
            raise invalid(
                f"p4_device_config is not JSON: {error}; give what p4c makes for bmv2"
            ) from None
        if not isinstance(program, dict):
            raise invalid("p4_device_config is not an object; give what p4c makes for bmv2")
        if not config.HasField("p4info"):
            raise invalid("no p4info; give what p4c makes with --p4runtime-files")
        kept = p4r.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        try:
            info = P4Info(config.p4info)
            info.check(program)
            self._switch.check_pipeline(*_program(config))
        except P4Error as error:  # what cannot be done is a config that cannot be realized
            raise invalid(error.message) from None
        except Refused as refused:
            raise invalid(str(refused)) from None
        return Pipeline(kept, info)

    def save(self, config: p4r.ForwardingPipelineConfig) -> None:
        self._saved = self.verify(config)
        self._waiting = []

    def commit_saved(self) -> None:
        """Raises P4Error if nothing was saved, or if what was written since cannot be done: then
        the old pipeline goes on."""
        if self._saved is None:
            raise P4Error(Code.NOT_FOUND, "there is no saved pipeline; save one by VERIFY_AND_SAVE")
        saved, waiting = self._saved, self._waiting
        self._replace(saved.config, waiting)

    def commit(self, config: p4r.ForwardingPipelineConfig) -> None:
        """With no state."""
        self._replace(config, [])

    def reconcile(self, config: p4r.ForwardingPipelineConfig) -> None:
        """With all state that clients have written. Raises P4Error if the new pipeline cannot have
        it: then the old one goes on."""
        new = self.verify(config)
        old = self.pipeline
        if old is not None and _is_same_program(old.config, new.config):
            old.config.CopyFrom(config)
            self._forget_saved()
            return
        updates = [] if old is None else self._state(old)
        self._replace(config, updates)

    def _replace(self, config: p4r.ForwardingPipelineConfig, updates: Sequence[p4r.Update]) -> None:
        """Another pipeline with the state that `updates` write, or the old one with its own."""
        new = self.verify(config)
        old = self.pipeline
        state = [] if old is None or not updates else self._state(old)
        self._run(new)
        self.pipeline = new
        self._forget_saved()
        try:
            self._write_all(new, updates)
        except BatchError as failed:
            if old is not None:
                restored = Pipeline(old.config, old.info)
                self._run(restored)
                self.pipeline = restored
                self._write_all(restored, state)
            first = next(error for error in failed.errors if error is not None)
            raise invalid(
                f"the state cannot be kept: {first.message}; the old pipeline goes on"
            ) from None

    def _run(self, pipeline: Pipeline) -> None:
        try:
            self._switch.set_pipeline(*_program(pipeline.config))
        except Refused as refused:
            raise invalid(f"{refused}; the old pipeline goes on") from None

    def _forget_saved(self) -> None:
        self._saved, self._waiting = None, []

    def _state(self, old: Pipeline) -> list[p4r.Update]:
        """Updates that write again what the old pipeline holds, in an order in which they can be
        done. Entries that the program has by itself are left out."""
        responses = Responses()
        reader = Reader(old.info, old.memory, self._switch, responses)
        every = p4r.Entity
        for request in (
            every(action_profile_member=p4r.ActionProfileMember()),
            every(action_profile_group=p4r.ActionProfileGroup()),
            every(
                table_entry=p4r.TableEntry(
                    counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig()
                )
            ),
            every(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
            every(value_set_entry=p4r.ValueSetEntry()),
            every(register_entry=p4r.RegisterEntry()),
            every(counter_entry=p4r.CounterEntry()),
            every(meter_entry=p4r.MeterEntry()),
            every(digest_entry=p4r.DigestEntry()),
        ):
            reader.read(request)
        for table in old.info.tables.values():
            if table.has_const_default or table.profile is not None:
                continue
            if not self._switch.read_default(table.name).get("is_initial", False):
                reader.read(
                    every(table_entry=p4r.TableEntry(table_id=table.id, is_default_action=True))
                )
        updates = []
        for response in responses.all():
            for entity in p4r.ReadResponse.FromString(response).entities:
                update = _rewriting(entity)
                if update is not None:
                    updates.append(update)
        return updates

    # Writes.

    def write(
        self,
        request: p4r.WriteRequest,
        rights: Rights = EVERYTHING,
        taken: frozenset[int] = frozenset(),
    ) -> None:
        """Of a role with `rights`; `taken`: ids that others alone may write. Raises BatchError if
        an update is refused, P4Error if all are."""
        refused = [_refusal(update, rights, taken) for update in request.updates]
        if self._saved is not None:
            self._write_later(request.updates, refused)
            return
        pipeline = self._present()
        if request.atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
            self._write_each(pipeline, request.updates, refused)
            return
        name = p4r.WriteRequest.Atomicity.Name(request.atomicity)
        if not self._switch.is_atomic:
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{name}: bmv2 cannot take back updates; write with CONTINUE_ON_ERROR, or use "
                "nagi-switch",
            )
        for place, error in enumerate(refused):
            if error is not None:
                raise BatchError(_only(error, place, len(refused)))
        self._write_all(pipeline, request.updates)

    def _present(self) -> Pipeline:
        if self.pipeline is None:
            raise P4Error(Code.FAILED_PRECONDITION, _NO_PIPELINE)
        return self.pipeline

    def _write_each(
        self,
        pipeline: Pipeline,
        updates: Sequence[p4r.Update],
        refused: Sequence[P4Error | None],
    ) -> None:
        planner = Planner(pipeline.info, pipeline.memory, self._switch)
        found = [
            error or self._write_one(planner, pipeline.memory, update)
            for update, error in zip(updates, refused, strict=True)
        ]
        if any(found):
            raise BatchError(found)

    def _write_one(self, planner: Planner, memory: Memory, update: p4r.Update) -> P4Error | None:
        try:
            plan = planner.plan(update)
            if len(plan.operations) == 1:
                answers = [self._switch.perform(plan.operations[0])]
            elif plan.operations:
                answers = self._switch.perform_all(plan.operations)
            else:
                answers = []
            self._check_numbers(plan, answers)
        except P4Error as error:
            memory.take_back()
            return error
        except Refused as refused:
            memory.take_back()
            return errors.of_refusal(refused)
        memory.keep()
        return None

    def _write_all(self, pipeline: Pipeline, updates: Sequence[p4r.Update]) -> None:
        """All updates at one instant, or none."""
        planner = Planner(pipeline.info, pipeline.memory, self._switch)
        operations: list[Operation] = []
        owners: list[int] = []  # of each operation, the update that it is for
        plans: list[tuple[int, Plan]] = []
        for place, update in enumerate(updates):
            try:
                plan = planner.plan(update)
            except (P4Error, Refused) as error:
                pipeline.memory.take_back()
                known = errors.of_refusal(error) if isinstance(error, Refused) else error
                raise BatchError(_only(known, place, len(updates))) from None
            plans.append((len(operations), plan))
            operations += plan.operations
            owners += [place] * len(plan.operations)
        try:
            answers = self._switch.perform_all(operations) if operations else []
        except Refused as refused:
            pipeline.memory.take_back()
            place = owners[refused.index or 0]
            raise BatchError(_only(errors.of_refusal(refused), place, len(updates))) from None
        for start, plan in plans:
            self._check_numbers(plan, answers[start : start + len(plan.operations)])
        pipeline.memory.keep()

    def _write_later(
        self, updates: Sequence[p4r.Update], refused: Sequence[P4Error | None]
    ) -> None:
        """Updates for a saved pipeline wait for COMMIT. Only what P4Info can tell is checked."""
        assert self._saved is not None
        planner = Planner(self._saved.info, self._saved.memory, self._switch)
        found: list[P4Error | None] = []
        for update, error in zip(updates, refused, strict=True):
            if error is not None:
                found.append(error)
                continue
            try:
                planner.plan(update)
                self._saved.memory.keep()
            except (P4Error, Refused) as said:
                self._saved.memory.take_back()
                found.append(errors.of_refusal(said) if isinstance(said, Refused) else said)
                continue
            found.append(None)
            kept = p4r.Update()
            kept.CopyFrom(update)
            self._waiting.append(kept)
        if any(found):
            raise BatchError(found)

    def _check_numbers(self, plan: Plan, answers: Sequence[Answer]) -> None:
        """Members and groups have the numbers that were expected, unless another controller makes
        some, too."""
        for place, key, number in plan.expected:
            if answers[place][key] != number:
                raise P4Error(
                    Code.ABORTED,
                    f"another controller changes {plan.operations[place]['profile']}, too; let "
                    "one alone do so, and set the pipeline again",
                )

    # Reads.

    def read(
        self, requests: Sequence[p4r.Entity], rights: Rights = EVERYTHING
    ) -> tuple[list[bytes], BatchError | None]:
        """ReadResponses with what a role with `rights` may read, and what went wrong."""
        if self._saved is not None:
            raise P4Error(
                Code.FAILED_PRECONDITION,
                "a saved pipeline waits for COMMIT and holds nothing yet; COMMIT it, then read",
            )
        pipeline = self._present()
        responses = Responses()
        reader = Reader(pipeline.info, pipeline.memory, self._switch, responses, rights)
        found: list[P4Error | None] = []
        for request in requests:
            try:
                reader.read(request)
                found.append(None)
            except P4Error as error:
                found.append(error)
            except Refused as refused:
                found.append(errors.of_refusal(refused))
        return responses.all(), BatchError(found) if any(found) else None


def _program(config: p4r.ForwardingPipelineConfig) -> tuple[str, str]:
    """The text of a program, and what errors call it."""
    name = config.p4info.pkg_info.name or "p4_device_config"
    return config.p4_device_config.decode(errors="replace"), name


def _refusal(update: p4r.Update, rights: Rights, taken: frozenset[int]) -> P4Error | None:
    """Why a role may not write an entity; None: it may."""
    if rights.ids is None and not taken:
        return None
    id = id_of(update.entity)
    if rights.has(id) and id not in taken:
        return None
    return P4Error(Code.PERMISSION_DENIED, f"the role may not write what has id {id}")


def _only(error: P4Error, place: int, count: int) -> list[P4Error | None]:
    """Of a batch of which nothing was done because of one update."""
    return [
        error if each == place else P4Error(Code.ABORTED, _ROLLED_BACK) for each in range(count)
    ]


def _is_same_program(old: p4r.ForwardingPipelineConfig, new: p4r.ForwardingPipelineConfig) -> bool:
    return old.p4_device_config == new.p4_device_config and old.p4info == new.p4info


def _rewriting(entity: p4r.Entity) -> p4r.Update | None:
    """The update that writes what was read; None: the program has it by itself."""
    kind = entity.WhichOneof("entity")
    update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
    if kind == "table_entry":
        if entity.table_entry.is_const:
            return None
        if entity.table_entry.is_default_action:
            update.type = MODIFY
    elif kind in ("value_set_entry", "register_entry", "counter_entry", "meter_entry"):
        update.type = MODIFY
        if _is_initial(entity):
            return None
    return update


def _is_initial(entity: p4r.Entity) -> bool:
    kind = entity.WhichOneof("entity")
    if kind == "value_set_entry":
        return not entity.value_set_entry.members
    if kind == "register_entry":
        return not entity.register_entry.data.bitstring.strip(b"\0")
    if kind == "counter_entry":
        data = entity.counter_entry.data
        return not (data.packet_count or data.byte_count)
    return not entity.meter_entry.HasField("config")
