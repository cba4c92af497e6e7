# SPDX-License-Identifier: Apache-2.0
"""Check nagi-link on hosts that are emulators."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts import __version__
from nagi_contracts.inspection import Inspection

from nagi.backends.interface import Stage
from nagi.doctor.observations import Observations, StageFinding


class EmulatorStage(Stage):
    """The stage of `nagi doctor` that checks nagi-link, which every emulator needs."""

    name = "emulator"
    order = 0

    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Yield one finding per emulator, about nagi-link's version and packet I/O.

        Hosts that were not inspected are skipped.
        """
        cure = "build it: `make setup`"
        if not observations.is_local:
            cure = f"install nagi-link {__version__} on the host, or set `nagi_link` to its path"
        for host, inspection in observations.list_emulators():
            version = (inspection.nagi_link or "").split()[-1:]
            if not version:
                error = " ".join((inspection.nagi_link_error or "it prints no version").split())
                yield StageFinding([host], "failure", f"nagi-link does not run: {error}", cure)
            elif version != [__version__]:
                message = f"the host has nagi-link {version[0]}, but this is nagi {__version__}"
                yield StageFinding([host], "failure", message, cure)
            else:
                yield _check_packet_io(host, inspection, f"nagi-link {version[0]}")
        yield from observations.skip_uninspected()


def _check_packet_io(host: str, inspection: Inspection, program: str) -> StageFinding:
    """Return the finding about nagi-link's packet I/O.

    Its status is `ok` for AF_XDP, `skipped` if the packet I/O is not known, otherwise `warning`.
    """
    if inspection.io is None:
        message = f"{program}; its packet I/O is known only while it runs"
        return StageFinding([host], "skipped", message, "see `ports` in a run's links.json")
    if inspection.io.startswith("af_xdp"):
        return StageFinding([host], "ok", f"{program}, {inspection.io}")
    return StageFinding(
        [host],
        "warning",
        f"{program} uses {inspection.io}",
        "boot a kernel with CONFIG_XDP_SOCKETS, or use an interface whose driver has XDP: "
        "af_packet handles about a third of the packets per second",
    )


part = EmulatorStage()
