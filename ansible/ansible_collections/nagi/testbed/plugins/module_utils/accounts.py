# SPDX-License-Identifier: Apache-2.0
"""Resources of the kinds group and user. Standard library only, for Python 3.9."""

from __future__ import annotations

import grp
import pwd
from typing import TypedDict

from ansible_collections.nagi.testbed.plugins.module_utils.system import ManagedResource


class GroupState(TypedDict):
    """The state of a group: its numeric id."""

    gid: int


class Group(ManagedResource):
    """A system group, which is created if it does not exist."""

    kind = "group"

    def read_state(self) -> GroupState | None:
        try:
            return {"gid": grp.getgrnam(self.name).gr_gid}
        except KeyError:
            return None

    def needs_change(self, state: GroupState | None) -> bool:
        return state is None

    def apply(self, state: GroupState | None) -> None:
        self.system.run("groupadd", "--system", self.name)

    def restore(self, original: GroupState | None, changes: list, other_entries: list) -> str:
        if original is not None or self.read_state() is None:
            return ""
        self.system.run("groupdel", self.name)
        return ""


class UserState(TypedDict):
    """The state of a user account: the name of the user's primary group."""

    group: str


class User(ManagedResource):
    """A system user without a login, whose primary group the settings name."""

    kind = "user"

    def read_state(self) -> UserState | None:
        try:
            account = pwd.getpwnam(self.name)
            return {"group": grp.getgrgid(account.pw_gid).gr_name}
        except KeyError:
            return None

    def needs_change(self, state: UserState | None) -> bool:
        return state is None or state["group"] != self.settings["group"]

    def apply(self, state: UserState | None) -> None:
        if state is None:
            options = ("--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell")
            self.system.run(
                *("useradd", *options, "/usr/sbin/nologin", "--gid", self.settings["group"]),
                *("--comment", self.settings["comment"], self.name),
            )
        else:
            self.system.run("usermod", "--gid", self.settings["group"], self.name)

    def restore(self, original: UserState | None, changes: list, other_entries: list) -> str:
        state = self.read_state()
        if state is None:
            return ""
        if original is None:
            self.system.run("userdel", self.name)
        elif state["group"] != original["group"]:
            self.system.run("usermod", "--gid", original["group"], self.name)
        return ""
