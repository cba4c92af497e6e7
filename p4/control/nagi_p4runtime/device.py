# SPDX-License-Identifier: Apache-2.0
"""The device that the server offers: a switch, its forwarding pipeline, and state of the server.

Requests are performed one at a time, so that no client sees a part of another client's Write.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from nagi_p4.operations import Answer, Operation, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime.entities.profiles import adopt_members_and_groups
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.memory import Memory
from nagi_p4runtime.p4info import P4Info
from nagi_p4runtime.plan import Plan, UpdateContext
from nagi_p4runtime.protos import p4i, p4r
from nagi_p4runtime.reads import read_entities
from nagi_p4runtime.responses import ReadContext, Responses
from nagi_p4runtime.restoring import ALL_STATE, make_restoring_update
from nagi_p4runtime.roles import EVERYTHING, Rights, find_object_id
from nagi_p4runtime.updates import plan_update

_ROLLED_BACK = "not performed, because another update of the batch was refused"
_NO_PIPELINE = (
    "there is no forwarding pipeline; set one by SetForwardingPipelineConfig, or start the server "
    "with --p4info"
)


class BatchError(Exception):
    """The error for a Write with at least one failed update, or a Read with a failed request.

    Attributes:
        errors: The error of each update or request; None for those that succeeded.
    """

    def __init__(self, errors: Sequence[P4Error | None]) -> None:
        super().__init__(f"{len(errors)} updates or requests")
        self.errors = errors


@dataclass
class Pipeline:
    """A forwarding pipeline that runs, or that is saved until COMMIT.

    Attributes:
        config: The config that a client sent.
        info: The P4Info of the config.
        memory: State that the server keeps for this pipeline.
    """

    config: p4r.ForwardingPipelineConfig
    info: P4Info
    memory: Memory = field(default_factory=Memory)


class Device:
    """A switch with its forwarding pipeline.

    Attributes:
        lock: The lock for the switch and this object. Callers of all methods except adopt() must
            hold the lock.
        pipeline: The running pipeline; None if there is none.
    """

    def __init__(self, switch: Switch) -> None:
        self.lock = threading.Lock()
        self._switch = switch
        self.pipeline: Pipeline | None = None
        self._saved: Pipeline | None = None  # by VERIFY_AND_SAVE, until COMMIT
        self._queued: list[p4r.Update] = []  # updates since VERIFY_AND_SAVE

    def adopt(self, p4info: p4i.P4Info) -> None:
        """Use the pipeline that the switch already runs, with its entries, members and groups.

        Raises:
            P4Error: The P4Info does not match the running pipeline.
            Refused: The switch cannot return its pipeline.
        """
        text = self._switch.read_pipeline()
        info = P4Info(p4info)
        info.check_pipeline(json.loads(text))
        config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=text.encode())
        self.pipeline = Pipeline(config, info)
        context = ReadContext(info, self.pipeline.memory, self._switch, Responses())
        for profile in info.profiles.values():
            adopt_members_and_groups(context, profile)

    # Forwarding pipelines.

    def verify(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        """Check a config, and return its pipeline. The switch keeps its current pipeline.

        Raises:
            P4Error: The config is wrong, or the switch cannot run its pipeline.
        """
        if not config.p4_device_config:
            raise InvalidArgument("p4_device_config is missing; give the JSON of p4c for bmv2")
        try:
            program = json.loads(config.p4_device_config)
        except ValueError as error:
            raise InvalidArgument(
                f"p4_device_config is not JSON: {error}; give the JSON of p4c for bmv2"
            ) from None
        if not isinstance(program, dict):
            raise InvalidArgument(
                "p4_device_config is no JSON object; give the JSON of p4c for bmv2"
            )
        if not config.HasField("p4info"):
            raise InvalidArgument("p4info is missing; give the file of p4c's --p4runtime-files")
        stored = p4r.ForwardingPipelineConfig()
        stored.CopyFrom(config)
        try:
            info = P4Info(config.p4info)
            info.check_pipeline(program)
            self._switch.check_pipeline(*_get_pipeline_text(config))
        except P4Error as error:  # the specification requires INVALID_ARGUMENT for all errors
            raise InvalidArgument(error.message) from None
        except Refused as refused:
            raise InvalidArgument(str(refused)) from None
        return Pipeline(stored, info)

    def save(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Check and save a config until COMMIT. Until then, Writes are queued.

        Raises:
            P4Error: The config is wrong, or the switch cannot run its pipeline.
        """
        self._saved = self.verify(config)
        self._queued = []

    def commit_saved(self) -> None:
        """Run the saved pipeline, and perform the queued updates.

        Raises:
            P4Error: There is no saved pipeline, or a queued update failed. The old pipeline keeps
                running, with its state.
        """
        if self._saved is None:
            raise P4Error(Code.NOT_FOUND, "there is no saved pipeline; save one by VERIFY_AND_SAVE")
        saved, queued = self._saved, self._queued
        self._replace(saved.config, queued)

    def commit(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Run the pipeline of a config, and delete the state of the old pipeline.

        A pipeline that save() has saved, and the updates queued for it, are deleted too.

        Raises:
            P4Error: The switch cannot run the pipeline. The old pipeline keeps running.
        """
        self._replace(config, [])

    def reconcile(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Run the pipeline of a config, with all state that clients have written.

        If the running pipeline is the same, only its cookie changes.

        Raises:
            P4Error: The switch cannot run the new pipeline, or the new pipeline does not accept the
                state. The old pipeline keeps running, with its state.
        """
        new = self.verify(config)
        old = self.pipeline
        if old is not None and _is_same_program(old.config, new.config):
            old.config.CopyFrom(config)
            self._forget_saved()
            return
        updates = [] if old is None else self._read_state(old)
        self._replace(config, updates)

    def _replace(self, config: p4r.ForwardingPipelineConfig, updates: Sequence[p4r.Update]) -> None:
        """Run the pipeline of a config and perform `updates`.

        If an update fails, run the old pipeline with its state again. Once the switch has accepted
        the new pipeline, the saved pipeline and the queued updates are deleted.

        Raises:
            P4Error: The config is wrong, the switch refused the pipeline, or an update failed.
        """
        new = self.verify(config)
        old = self.pipeline
        old_state = [] if old is None or not updates else self._read_state(old)
        self._run(new)
        self.pipeline = new
        self._forget_saved()
        try:
            self._write_all(new, updates)
        except BatchError as batch:
            if old is not None:
                restored = Pipeline(old.config, old.info)
                self._run(restored)
                self.pipeline = restored
                self._write_all(restored, old_state)
            first = next(error for error in batch.errors if error is not None)
            raise InvalidArgument(
                f"the new pipeline does not accept the state: {first.message}; the old pipeline "
                "keeps running"
            ) from None

    def _run(self, pipeline: Pipeline) -> None:
        try:
            self._switch.set_pipeline(*_get_pipeline_text(pipeline.config))
        except Refused as refused:
            raise InvalidArgument(f"{refused}; the old pipeline keeps running") from None

    def _forget_saved(self) -> None:
        self._saved, self._queued = None, []

    def _read_state(self, old: Pipeline) -> list[p4r.Update]:
        """Return updates that restore the state of a pipeline, in an order that the switch accepts.

        Entries that the P4 program itself defines, and initial values, are left out.
        """
        responses = Responses()
        context = ReadContext(old.info, old.memory, self._switch, responses)
        for request in ALL_STATE:
            read_entities(context, request)
        for table in old.info.tables.values():
            if table.has_const_default or table.profile is not None:
                continue
            if not self._switch.read_default(table.name).get("is_initial", False):
                default_entry = p4r.TableEntry(table_id=table.id, is_default_action=True)
                read_entities(context, p4r.Entity(table_entry=default_entry))
        updates = []
        for response in responses.finish():
            for entity in p4r.ReadResponse.FromString(response).entities:
                update = make_restoring_update(entity)
                if update is not None:
                    updates.append(update)
        return updates

    # Writes.

    def write(
        self,
        request: p4r.WriteRequest,
        rights: Rights = EVERYTHING,
        reserved_ids: frozenset[int] = frozenset(),
    ) -> None:
        """Perform a Write, or queue its updates if a pipeline is saved until COMMIT.

        Args:
            request: The request.
            rights: The rights of the client's role.
            reserved_ids: Ids of objects that only other roles may write.

        Raises:
            BatchError: At least one update failed. With CONTINUE_ON_ERROR the others were
                performed; otherwise none was.
            P4Error: The whole Write was refused.
        """
        denials = [_check_rights(update, rights, reserved_ids) for update in request.updates]
        if self._saved is not None:
            self._queue(request.updates, denials)
            return
        pipeline = self._require_pipeline()
        if request.atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
            self._write_each(pipeline, request.updates, denials)
            return
        name = p4r.WriteRequest.Atomicity.Name(request.atomicity)
        if not self._switch.is_atomic:
            raise P4Error(
                Code.UNIMPLEMENTED,
                f"{name}: bmv2 cannot undo updates; write with CONTINUE_ON_ERROR, or use "
                "nagi-switch",
            )
        for index, error in enumerate(denials):
            if error is not None:
                raise BatchError(_fail_batch(error, index, len(denials)))
        self._write_all(pipeline, request.updates)

    def _require_pipeline(self) -> Pipeline:
        if self.pipeline is None:
            raise P4Error(Code.FAILED_PRECONDITION, _NO_PIPELINE)
        return self.pipeline

    def _write_each(
        self,
        pipeline: Pipeline,
        updates: Sequence[p4r.Update],
        denials: Sequence[P4Error | None],
    ) -> None:
        """Perform each update without a denial, even if others fail.

        Args:
            pipeline: The running pipeline.
            updates: The updates.
            denials: For each update, the error if the client's role may not write it, or None.

        Raises:
            BatchError: At least one update was denied or failed.
        """
        context = UpdateContext(pipeline.info, pipeline.memory, self._switch)
        errors = [
            denial or self._write_one(context, update)
            for update, denial in zip(updates, denials, strict=True)
        ]
        if any(errors):
            raise BatchError(errors)

    def _write_one(self, context: UpdateContext, update: p4r.Update) -> P4Error | None:
        """Perform an update, and return its error, or None if it succeeded."""
        try:
            plan = plan_update(context, update)
            if len(plan.operations) == 1:
                answers = [self._switch.perform(plan.operations[0])]
            elif plan.operations:
                answers = self._switch.perform_all(plan.operations)
            else:
                answers = []
            self._check_numbers(plan, answers)
        except (P4Error, Refused) as error:
            context.memory.roll_back()
            return _to_p4_error(error)
        context.memory.commit()
        return None

    def _write_all(self, pipeline: Pipeline, updates: Sequence[p4r.Update]) -> None:
        """Perform all updates at one instant, or none of them.

        Raises:
            BatchError: An update failed.
        """
        context = UpdateContext(pipeline.info, pipeline.memory, self._switch)
        operations: list[Operation] = []
        update_indices: list[int] = []  # per operation
        plans: list[tuple[int, Plan]] = []  # with the index of the plan's first operation
        for index, update in enumerate(updates):
            try:
                plan = plan_update(context, update)
            except (P4Error, Refused) as error:
                pipeline.memory.roll_back()
                raise BatchError(_fail_batch(_to_p4_error(error), index, len(updates))) from None
            plans.append((len(operations), plan))
            operations += plan.operations
            update_indices += [index] * len(plan.operations)
        try:
            answers = self._switch.perform_all(operations) if operations else []
        except Refused as refused:
            pipeline.memory.roll_back()
            index = update_indices[refused.index or 0]
            raise BatchError(_fail_batch(_to_p4_error(refused), index, len(updates))) from None
        for start, plan in plans:
            self._check_numbers(plan, answers[start : start + len(plan.operations)])
        pipeline.memory.commit()

    def _queue(self, updates: Sequence[p4r.Update], denials: Sequence[P4Error | None]) -> None:
        """Queue updates for the saved pipeline until COMMIT.

        The updates are checked with the P4Info and the memory of the saved pipeline only. `denials`
        has the error for each update that the client's role may not write, or None.

        Raises:
            BatchError: At least one update was denied or is wrong. The others are queued.
        """
        assert self._saved is not None
        context = UpdateContext(self._saved.info, self._saved.memory, self._switch)
        errors: list[P4Error | None] = []
        for update, denial in zip(updates, denials, strict=True):
            if denial is not None:
                errors.append(denial)
                continue
            try:
                plan_update(context, update)
                self._saved.memory.commit()
            except (P4Error, Refused) as error:
                self._saved.memory.roll_back()
                errors.append(_to_p4_error(error))
                continue
            errors.append(None)
            stored = p4r.Update()
            stored.CopyFrom(update)
            self._queued.append(stored)
        if any(errors):
            raise BatchError(errors)

    def _check_numbers(self, plan: Plan, answers: Sequence[Answer]) -> None:
        """Check that the switch gave new members and groups the numbers that the plan expects.

        The numbers differ if another controller also creates members or groups.
        """
        for index, key, number in plan.expected:
            if answers[index][key] != number:
                raise P4Error(
                    Code.ABORTED,
                    f"another controller also changes {plan.operations[index]['profile']}; use "
                    "only one controller, and set the pipeline again",
                )

    # Reads.

    def read(
        self, requests: Sequence[p4r.Entity], rights: Rights = EVERYTHING
    ) -> tuple[list[bytes], BatchError | None]:
        """Perform a Read.

        Args:
            requests: The requested entities.
            rights: The rights of the client's role.

        Returns:
            The encoded ReadResponses, and an error if at least one request failed, or None. The
            responses have the entities of the other requests.

        Raises:
            P4Error: There is no pipeline, or a pipeline is saved until COMMIT.
        """
        if self._saved is not None:
            raise P4Error(
                Code.FAILED_PRECONDITION,
                "a pipeline is saved but does not run yet, so there is no state to read; COMMIT "
                "the pipeline first",
            )
        pipeline = self._require_pipeline()
        responses = Responses()
        context = ReadContext(pipeline.info, pipeline.memory, self._switch, responses, rights)
        errors: list[P4Error | None] = []
        for request in requests:
            try:
                read_entities(context, request)
                errors.append(None)
            except (P4Error, Refused) as error:
                errors.append(_to_p4_error(error))
        return responses.finish(), BatchError(errors) if any(errors) else None


def _to_p4_error(error: P4Error | Refused) -> P4Error:
    return P4Error.from_refused(error) if isinstance(error, Refused) else error


def _get_pipeline_text(config: p4r.ForwardingPipelineConfig) -> tuple[str, str]:
    """Return the pipeline's JSON of a config, and the name of the pipeline for error messages."""
    name = config.p4info.pkg_info.name or "p4_device_config"
    return config.p4_device_config.decode(errors="replace"), name


def _check_rights(
    update: p4r.Update, rights: Rights, reserved_ids: frozenset[int]
) -> P4Error | None:
    """Return an error if a role may not perform an update, or None if it may.

    Args:
        update: The update.
        rights: The rights of the role.
        reserved_ids: Ids of objects that only other roles may write.
    """
    if rights.ids is None and not reserved_ids:
        return None
    id = find_object_id(update.entity)
    if rights.can_access(id) and id not in reserved_ids:
        return None
    return P4Error(Code.PERMISSION_DENIED, f"the role may not write the object with id {id}")


def _fail_batch(error: P4Error, index: int, count: int) -> list[P4Error | None]:
    """Return the errors of a batch without effect: `error` at `index`, ABORTED for the others."""
    return [
        error if each == index else P4Error(Code.ABORTED, _ROLLED_BACK) for each in range(count)
    ]


def _is_same_program(old: p4r.ForwardingPipelineConfig, new: p4r.ForwardingPipelineConfig) -> bool:
    return old.p4_device_config == new.p4_device_config and old.p4info == new.p4info
