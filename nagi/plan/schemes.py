# SPDX-License-Identifier: Apache-2.0
"""TCP schemes and host profiles by name: what they set, and whether a kernel can run them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from nagi_contracts import paths
from nagi_contracts.base import Contract
from nagi_contracts.inspection import Inspection
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from nagi.plan import scheme_objects, scheme_sources
from nagi.spec.yaml_source import read_yaml

NO_CONTROL = "none"  # of datagrams
# Of a scheme that holds its window.
WINDOW = scheme_objects.Parameter(
    default=0,
    minimum=0,
    maximum=1_000_000,
    unit="packets",
    meaning="the window; 0: what fills the path without a queue",
)


class Scheme(Contract):
    """An entry of hosts/schemes.yaml. `name` and `receiver` are not in the file."""

    name: str = Field("", description="that of the entry")
    summary: str
    reference: str
    kernel: str | None = Field(None, description="a congestion control of the kernel's own")
    object: str | None = Field(
        None, description="one of ours, in hosts/tcp; or the path of an object, relative to here"
    )
    is_datagrams: bool = Field(
        False,
        description="whether it is no TCP, but UDP at the largest rate that the path carries",
    )
    needs_marks: bool = Field(False, description="whether a link on its path has to mark (ECN)")
    both_ends: bool = Field(False, description="whether the receiver's end runs it, too")
    holds_window: bool = Field(False, description="whether its window is held; it is a parameter")
    quickack: bool = Field(
        False, description="whether the receiver's kernel must acknowledge every segment"
    )
    receiver: Scheme | None = Field(None, description="what the receiver's end runs")
    sysctls: dict[str, str | int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Scheme:
        if [self.kernel is None, self.object is None, not self.is_datagrams].count(False) != 1:
            raise ValueError("give one of `kernel`, `object` and `is_datagrams: true`")
        return self

    @property
    def congestion_control(self) -> str:
        """The name it has in the kernel; of an object, in plans and records."""
        if self.object is None:
            return self.kernel or NO_CONTROL
        return f"nagi_{Path(self.object).name.partition('.')[0]}"

    @property
    def parameters(self) -> dict[str, scheme_objects.Parameter]:
        """What an experiment may set. Raises InputError if its object is no scheme."""
        if self.object_file is not None:
            return scheme_objects.describe(self.object_file).parameters
        return {"window": WINDOW} if self.holds_window else {}

    @property
    def objects(self) -> list[Path]:
        """The eBPF objects that its flows need, at both ends."""
        ends = [self] if self.receiver is None else [self, self.receiver]
        return [each.object_file for each in ends if each.object_file is not None]

    @property
    def own_file(self) -> Path | None:
        """The user's file, if it is a user's own."""
        return Path(str(self.object)) if is_own(self.name) else None

    @property
    def object_file(self) -> Path | None:
        """The file of its eBPF object, if it is one; compiled, if it is given as C. Raises
        InputError if it does not compile."""
        if self.object is None:
            return None
        if self.object.endswith(scheme_objects.SUFFIX):
            return paths.SCHEMES.parent / self.object
        if self.own_file is None:
            return paths.scheme_object(self.object)
        made = scheme_sources.compiled(self.own_file)
        scheme_objects.check_name(made, self.own_file)
        return made


class Profile(Contract):
    """An entry of hosts/profiles.yaml: what differs between kinds of hosts."""

    summary: str
    sysctls: dict[str, str | int] = Field(default_factory=dict)
    initial_window: int | None = Field(None, description="packets; the kernel's own if not given")
    delayed_acks: bool = True


@dataclass(frozen=True)
class Availability:
    """Whether a scheme can run, and if not, why not and what would help."""

    available: bool
    reason: str = ""
    cure: str = ""


_Entry = TypeVar("_Entry", bound=Contract)


def _read(path: Path, key: str, entry: type[_Entry]) -> dict[str, _Entry]:
    source = read_yaml(path)
    entries: dict[str, _Entry] = {}
    for name, value in source.data.get(key, {}).items():
        try:
            entries[name] = TypeAdapter(entry).validate_python(value)
        except ValidationError as error:
            first: Any = error.errors()[0]
            raise source.error(
                (key, name, *first["loc"]), first["msg"], "correct the entry"
            ) from None
    return entries


@cache
def schemes() -> dict[str, Scheme]:
    """All schemes by name."""
    found = {}
    for name, scheme in _read(paths.SCHEMES, "schemes", Scheme).items():
        named = scheme.model_copy(update={"name": name})
        found[name] = named.model_copy(update={"receiver": named if scheme.both_ends else None})
    return found


@cache
def receivers() -> dict[str, Scheme]:
    """What a receiver's end may run beside any scheme, by name."""
    found = _read(paths.SCHEMES, "receivers", Scheme)
    return {name: each.model_copy(update={"name": name}) for name, each in found.items()}


def find(name: str, beside: Callable[[str], Path]) -> Scheme | None:
    """The scheme of this name; SCHEME-RECEIVER is one of the two together. The path of a C file, of
    a directory with one of its name, or of an eBPF object is one, too: a user's own. `beside` says
    where a relative one is."""
    if name in schemes():
        return schemes()[name]
    sender, _, receiver = name.rpartition("-")
    if receiver in receivers():
        found = find(sender, beside)
        if found is None or found.receiver is not None or found.is_datagrams:
            return None
        return found.model_copy(update={"receiver": receivers()[receiver]})
    if is_own(name):
        # Ours have it, as what the headers do is for connections without SACK.
        is_source = not name.endswith(scheme_objects.SUFFIX)
        return Scheme(
            name=name,
            summary="a scheme of the user's own",
            reference=name,
            object=str(beside(name).absolute()),
            sysctls=schemes()["reno"].sysctls if is_source else {},
        )
    return None


def is_own(name: str) -> bool:
    """Whether a scheme's name is the path of a user's own: an object, a C file or a directory."""
    return name.endswith((scheme_objects.SUFFIX, scheme_sources.SUFFIX, "/"))


@cache
def profiles() -> dict[str, Profile]:
    """All host profiles by name."""
    return _read(paths.PROFILES, "profiles", Profile)


@cache
def base_sysctls() -> dict[str, str]:
    """What every host has set, whatever its profile and schemes."""
    values = read_yaml(paths.PROFILES).data["sysctls"]
    return {key: str(value) for key, value in values.items()}


def _kernel_release() -> str:
    return Path("/proc/sys/kernel/osrelease").read_text().strip()


def loaded() -> set[str]:
    """Congestion controls the kernel has ready."""
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def _loadable(congestion_control: str) -> bool:
    modules = Path("/lib/modules") / _kernel_release() / "modules.dep"
    try:
        return f"/tcp_{congestion_control}.ko" in modules.read_text()
    except OSError:
        return False


def availability(scheme: Scheme) -> Availability:
    """Whether this machine's kernel can run `scheme`."""
    if scheme.objects and os.geteuid() != 0:
        return Availability(True, "not tried, which needs root", "run the same with sudo")
    for file in scheme.objects:
        refusal = scheme_objects.refusal(file)
        if refusal is not None:
            return Availability(False, *refusal)
    if scheme.object_file is not None or scheme.is_datagrams:
        return Availability(True)
    name = scheme.congestion_control
    return of_kernel(scheme, _kernel_release(), name in loaded() or _loadable(name))


def availability_on(scheme: Scheme, found: Inspection) -> Availability:
    """Whether a host's kernel can run `scheme`, as its agent has found it."""
    # A user's own object comes with the agents of a campaign, which are asked before it begins.
    for file in scheme.objects:
        complaint = found.refused_objects.get(scheme_objects.object_name(file))
        if complaint is not None:
            return Availability(False, *scheme_objects.in_two(complaint))
    if scheme.kernel is not None:
        present = scheme.congestion_control in found.congestion_controls
        return of_kernel(scheme, found.facts.kernel, present)
    return Availability(True)


def of_kernel(scheme: Scheme, kernel: str, present: bool) -> Availability:
    """Of a congestion control of the kernel's own; `present`: the kernel has it."""
    if present:
        return Availability(True)
    return Availability(
        False,
        f"kernel {kernel} has no tcp_{scheme.kernel}",
        f"boot a kernel with CONFIG_TCP_CONG_{str(scheme.kernel).upper()}, such as Debian's",
    )
