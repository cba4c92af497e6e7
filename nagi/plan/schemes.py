# SPDX-License-Identifier: Apache-2.0
"""Read TCP schemes and host profiles, and check whether a kernel can run a scheme."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from nagi_contracts import paths
from nagi_contracts.base import Contract
from nagi_contracts.inspection import Inspection
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from nagi.backends.availability import Availability
from nagi.plan import scheme_objects, scheme_sources
from nagi.spec.yaml_source import read_yaml

NO_CONTROL = "none"  # congestion control of a scheme that sends datagrams
# Parameter of a scheme that keeps its congestion window constant.
WINDOW = scheme_objects.Parameter(
    default=0,
    minimum=0,
    maximum=1_000_000,
    unit="packets",
    meaning="the window; 0: the window that fills the path without a queue",
)


class Scheme(Contract):
    """A TCP scheme: an entry of hosts/schemes.yaml, plus its `name` and `receiver`."""

    name: str = Field("", description="name of the entry")
    summary: str
    reference: str
    kernel: str | None = Field(None, description="name of a congestion control of the kernel")
    object: str | None = Field(
        None,
        description="name of a scheme in hosts/tcp; or path of an eBPF object or of a user's file",
    )
    is_datagrams: bool = Field(
        False,
        description="whether the flow does not use TCP, but UDP at the largest rate of its path",
    )
    needs_marks: bool = Field(False, description="whether a link on its path has to mark (ECN)")
    both_ends: bool = Field(False, description="whether the receiver also runs the scheme")
    holds_window: bool = Field(
        False, description="whether the congestion window is constant; parameter `window` sets it"
    )
    quickack: bool = Field(
        False, description="whether the receiver's kernel must acknowledge every segment"
    )
    receiver: Scheme | None = Field(None, description="the scheme that the receiver runs")
    sysctls: dict[str, str | int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _require_one_source(self) -> Scheme:
        if [self.kernel is None, self.object is None, not self.is_datagrams].count(False) != 1:
            raise ValueError("give one of `kernel`, `object` and `is_datagrams: true`")
        return self

    @property
    def congestion_control(self) -> str:
        """The name of the congestion control in the kernel, in plans and in records."""
        if self.object is None:
            return self.kernel or NO_CONTROL
        return f"nagi_{Path(self.object).name.partition('.')[0]}"

    @property
    def parameters(self) -> dict[str, scheme_objects.Parameter]:
        """The parameters that an experiment may set: name -> default and range.

        Raises:
            InputError: If the eBPF object has no scheme, or the scheme does not compile.
        """
        if self.object_file is not None:
            return scheme_objects.describe(self.object_file).parameters
        return {"window": WINDOW} if self.holds_window else {}

    @property
    def object_files(self) -> list[Path]:
        """The eBPF objects that a flow needs at its sender, then at its receiver; may be empty."""
        schemes = [self] if self.receiver is None else [self, self.receiver]
        return [scheme.object_file for scheme in schemes if scheme.object_file is not None]

    @property
    def own_file(self) -> Path | None:
        """The C file, directory or object of a user's own scheme; None for other schemes."""
        return Path(str(self.object)) if is_user_scheme(self.name) else None

    @property
    def object_file(self) -> Path | None:
        """The eBPF object of the scheme, or None. A user's scheme in C is compiled first.

        Raises:
            InputError: If the scheme does not compile.
        """
        if self.object is None:
            return None
        if self.object.endswith(scheme_objects.SUFFIX):
            return paths.SCHEMES.parent / self.object
        if self.own_file is None:
            return paths.scheme_object(self.object)
        object_file = scheme_sources.compile_scheme(self.own_file)
        scheme_objects.check_name(object_file, self.own_file)
        return object_file


class Profile(Contract):
    """An entry of hosts/profiles.yaml: the settings of one kind of hosts."""

    summary: str
    sysctls: dict[str, str | int] = Field(default_factory=dict)
    initial_window: int | None = Field(
        None, description="in packets; the kernel's default if not given"
    )
    delayed_acks: bool = True


_Entry = TypeVar("_Entry", bound=Contract)


def _read_entries(path: Path, key: str, entry: type[_Entry]) -> dict[str, _Entry]:
    """Return the entries of the mapping `key` in a YAML file: name -> object of class `entry`."""
    source = read_yaml(path)
    entries: dict[str, _Entry] = {}
    for name, value in source.data.get(key, {}).items():
        try:
            entries[name] = TypeAdapter(entry).validate_python(value)
        except ValidationError as error:
            first_error: Any = error.errors()[0]
            raise source.error(
                (key, name, *first_error["loc"]), first_error["msg"], "correct the entry"
            ) from None
    return entries


@cache
def read_schemes() -> dict[str, Scheme]:
    """Return all schemes of hosts/schemes.yaml: name -> scheme."""
    schemes = {}
    for name, scheme in _read_entries(paths.SCHEMES, "schemes", Scheme).items():
        named_scheme = scheme.model_copy(update={"name": name})
        schemes[name] = named_scheme.model_copy(
            update={"receiver": named_scheme if scheme.both_ends else None}
        )
    return schemes


@cache
def read_receivers() -> dict[str, Scheme]:
    """Return the schemes for receivers in hosts/schemes.yaml: name -> scheme.

    An experiment combines a receiver's scheme with a sender's scheme as SCHEME-RECEIVER.
    """
    entries = _read_entries(paths.SCHEMES, "receivers", Scheme)
    return {name: scheme.model_copy(update={"name": name}) for name, scheme in entries.items()}


def find_scheme(name: str, resolve_path: Callable[[str], Path]) -> Scheme | None:
    """Return the scheme that an experiment names.

    Return None if the name is unknown, or if SCHEME cannot be combined with RECEIVER. The file of a
    user's own scheme need not exist.

    Args:
        name: A name of hosts/schemes.yaml; SCHEME-RECEIVER, which combines a scheme and a
            receiver; or the path of a user's own scheme: a C file, a directory with a C file of
            the directory's name, or an eBPF object.
        resolve_path: A function that returns the path of a file that an experiment file names.
    """
    if name in read_schemes():
        return read_schemes()[name]
    sender, _, receiver = name.rpartition("-")
    if receiver in read_receivers():
        scheme = find_scheme(sender, resolve_path)
        if scheme is None or scheme.receiver is not None or scheme.is_datagrams:
            return None
        return scheme.model_copy(update={"receiver": read_receivers()[receiver]})
    if is_user_scheme(name):
        # nagi's headers do not support SACK, so a scheme in C gets the sysctls of nagi's schemes.
        is_source = not name.endswith(scheme_objects.SUFFIX)
        return Scheme(
            name=name,
            summary="a scheme of the user's own",
            reference=name,
            object=str(resolve_path(name).absolute()),
            sysctls=read_schemes()["reno"].sysctls if is_source else {},
        )
    return None


def is_user_scheme(name: str) -> bool:
    """Return whether a scheme's name ends like a user's path: of an object, C file or directory."""
    return name.endswith((scheme_objects.SUFFIX, scheme_sources.SUFFIX, "/"))


@cache
def read_profiles() -> dict[str, Profile]:
    """Return all host profiles of hosts/profiles.yaml: name -> profile."""
    return _read_entries(paths.PROFILES, "profiles", Profile)


@cache
def read_base_sysctls() -> dict[str, str]:
    """Return the sysctls of every host, which its profile and its schemes may replace."""
    values = read_yaml(paths.PROFILES).data["sysctls"]
    return {key: str(value) for key, value in values.items()}


def _read_kernel_release() -> str:
    return Path("/proc/sys/kernel/osrelease").read_text().strip()


def read_loaded_controls() -> set[str]:
    """Return the congestion controls that are loaded in the kernel."""
    return set(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())


def _is_loadable(congestion_control: str) -> bool:
    """Return whether the running kernel has a module for a congestion control."""
    modules = Path("/lib/modules") / _read_kernel_release() / "modules.dep"
    try:
        return f"/tcp_{congestion_control}.ko" in modules.read_text()
    except OSError:
        return False


def check_availability(scheme: Scheme) -> Availability:
    """Return whether this machine's kernel can run `scheme`; if not, with reason and cure.

    Without root, an eBPF scheme counts as available, with a message that it was not tried.
    """
    if scheme.object_files and os.geteuid() != 0:
        return Availability(True, "not tried, because that needs root", "run the command with sudo")
    for file in scheme.object_files:
        refusal = scheme_objects.explain_refusal(file)
        if refusal is not None:
            return Availability(False, *refusal)
    if scheme.object_file is not None or scheme.is_datagrams:
        return Availability(True)
    name = scheme.congestion_control
    return check_kernel_control(
        scheme, _read_kernel_release(), name in read_loaded_controls() or _is_loadable(name)
    )


def check_availability_on_host(scheme: Scheme, inspection: Inspection) -> Availability:
    """Return whether a host's kernel can run `scheme`, by the host's inspection.

    Users' own objects count as available. Agents get them with the campaign, and check them before
    the first run.
    """
    for file in scheme.object_files:
        complaint = inspection.refused_objects.get(scheme_objects.make_object_name(file))
        if complaint is not None:
            return Availability(False, *scheme_objects.split_complaint(complaint))
    if scheme.kernel is not None:
        is_present = scheme.congestion_control in inspection.congestion_controls
        return check_kernel_control(scheme, inspection.facts.kernel, is_present)
    return Availability(True)


def check_kernel_control(scheme: Scheme, kernel: str, is_present: bool) -> Availability:
    """Return whether a kernel has a scheme's congestion control; if not, with reason and cure.

    Args:
        scheme: A scheme that is a congestion control of the kernel.
        kernel: Release of the kernel, for the message.
        is_present: Whether the kernel has the congestion control.
    """
    if is_present:
        return Availability(True)
    return Availability(
        False,
        f"kernel {kernel} has no tcp_{scheme.kernel}",
        f"boot a kernel with CONFIG_TCP_CONG_{str(scheme.kernel).upper()}, such as Debian's",
    )
