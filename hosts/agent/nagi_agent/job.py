# SPDX-License-Identifier: Apache-2.0
"""The parts of a batch that do not depend on a run: node, interfaces, programs, directories."""

from __future__ import annotations

import os
from typing import Optional

from nagi_agent import host, processes
from nagi_agent.contracts import Batch
from nagi_agent.hold import SETTINGS_JOURNAL

BOARD = "board"  # stands for a port of an FPGA board in a list of the emulator's interfaces


class Job:
    """The settings of an agent for all runs of a batch.

    Attributes:
        interfaces: link -> this node's interface.
        ends: link -> the emulator's interfaces at both ends of the link, and medium -> the
            emulator's interfaces to the stations of the medium.
        macs: medium -> MAC addresses of its stations; only media whose addresses differ from the
            plan's.
        backends: backend -> programs and settings that the backend's code in the agent needs.
    """

    def __init__(self, batch: Batch) -> None:
        self.node = batch.node
        self.is_emulator = batch.is_emulator
        self.interfaces = {
            link: name for link, name in batch.interfaces.items() if isinstance(name, str)
        }
        self.ends = {
            link: ends for link, ends in batch.interfaces.items() if not isinstance(ends, str)
        }
        self.macs = batch.macs
        self.spool = batch.spool
        self.state = batch.state
        self.user = batch.user or processes.find_service_user()
        self.nagi_link = batch.nagi_link
        self.backends = batch.backends
        self.virtual = batch.virtual
        self.files = batch.files
        self.facts = host.read_facts()

    @property
    def daemon_user(self) -> Optional[str]:
        """The user to which nagi-link and nagi-switch change when their files are open.

        It is None in a guest, where programs stay root: root of a guest has no privileges outside.
        """
        return None if self.virtual else self.user

    @property
    def all_interfaces(self) -> list[str]:
        """The names of this node's interfaces, sorted; on the emulator, of all links and media."""
        emulator_interfaces = {
            name for ends in self.ends.values() for name in ends if name != BOARD
        }
        return sorted(emulator_interfaces.union(self.interfaces.values()))

    @property
    def settings_journal(self) -> str:
        """Path of the journal of a run's changes to sysctls and routes."""
        return os.path.join(self.state, SETTINGS_JOURNAL)
