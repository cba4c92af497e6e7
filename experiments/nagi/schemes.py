# SPDX-License-Identifier: Apache-2.0
"""TCP schemes and host profiles by name: what they set, and whether a kernel can run them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from nagi import paths
from nagi.contracts.base import Contract
from nagi.yaml_source import read_yaml


class Scheme(Contract):
    """An entry of hosts/schemes.yaml."""

    summary: str
    reference: str
    kernel: str | None = Field(None, description="a congestion control of the kernel's own")
    program: str | None = Field(None, description="one of ours, in hosts/tcp")
    sysctls: dict[str, str | int] = Field(default_factory=dict)

    @property
    def congestion_control(self) -> str:
        """The name it has in the kernel."""
        return self.kernel or f"nagi_{self.program}"


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
            raise source.error((key, name, *first["loc"]), first["msg"], "mend it") from None
    return entries


@cache
def schemes() -> dict[str, Scheme]:
    """All schemes by name."""
    return _read(paths.SCHEMES, "schemes", Scheme)


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
    name = scheme.congestion_control
    return availability_on(scheme, _kernel_release(), name in loaded() or _loadable(name))


def availability_on(scheme: Scheme, kernel: str, present: bool) -> Availability:
    """Whether a kernel can run `scheme`; `present`: it has the scheme's congestion control."""
    if scheme.program is not None:
        return Availability(
            False,
            f"nagi's own {scheme.program} is not part of this version",
            "use a scheme of the kernel's own: `nagi schemes` lists them",
        )
    assert scheme.kernel is not None
    if present:
        return Availability(True)
    return Availability(
        False,
        f"kernel {kernel} has no tcp_{scheme.kernel}",
        f"boot a kernel with CONFIG_TCP_CONG_{scheme.kernel.upper()}, such as Debian's",
    )
