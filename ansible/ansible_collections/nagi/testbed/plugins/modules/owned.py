# SPDX-License-Identifier: Apache-2.0
"""Ansible module: what a role has on a host, written down so that it can be put back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: owned
short_description: what a role has on a host, written down so that it can be put back
description:
  - Packages, accounts, files, units and settings of one role are made what they are to be. What was
    there before is noted in a manifest on the host (/var/lib/nagi-testbed) before it is changed.
  - What the role had, and does not name any more, is put back.
  - Changes only what differs. What an operator has edited since is kept beside, and said.
  - An action plugin brings O(files[].source) from the controller.
author: the nagi authors
options:
  role:
    description: whose things these are
    type: str
  packages:
    description: packages, by name or by a pattern that apt-get takes
    type: list
    elements: str
    default: []
  debs:
    description: packages of nagi's own, files on the controller
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: the package's name
        type: str
        required: true
      source:
        description: the file
        type: path
      sha256:
        description: of the file; the action plugin says it
        type: str
  stopped:
    description: services of the distribution that are stopped and disabled
    type: list
    elements: str
    default: []
  groups:
    description: system groups
    type: list
    elements: str
    default: []
  users:
    description: system accounts that nobody logs in to
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: its name
        type: str
        required: true
      group:
        description: its group
        type: str
        required: true
      comment:
        description: what it is for
        type: str
        default: ""
  directories:
    description: directories, the outer before the inner; one that is there stays as it is
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: its path
        type: path
        required: true
      mode:
        description: its mode
        type: str
        default: "0755"
      contents:
        description: whether all that is in it is nagi's, and goes with it
        type: bool
        default: false
  journals:
    description: files in which M(nagi.testbed.interfaces) notes how to undo what it changes
    type: list
    elements: path
    default: []
  files:
    description: files; directories above them are made
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: its path
        type: path
        required: true
      content:
        description: its content, as text
        type: str
      source:
        description: in place of O(files[].content), a file of the controller's
        type: path
      sha256:
        description: of O(files[].source); the action plugin says it
        type: str
      mode:
        description: its mode
        type: str
        default: "0644"
      read_by:
        description: services that read the file, which are restarted, if they run, when it changes
        type: list
        elements: str
        default: []
      validate:
        description: a command that must accept the file before it is put in its place, C(%s) for it
        type: list
        elements: str
        default: []
  overrides:
    description: files of packages that have another group, mode and capabilities
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: its path
        type: path
        required: true
      group:
        description: its group
        type: str
        required: true
      mode:
        description: its mode
        type: str
        required: true
      capabilities:
        description: its capabilities, as getcap(8) prints them
        type: str
        required: true
  sysctls:
    description: settings of the running kernel; for boots to come, a file says them
    type: dict
    default: {}
  modules:
    description: modules that the kernel is to have loaded, where it has them
    type: list
    elements: str
    default: []
  units:
    description: units that are enabled and run; they are restarted if a file of the role changes
    type: list
    elements: str
    default: []
  start:
    description: whether units are started, or only enabled, as for a disk image
    type: bool
    default: true
  absent:
    description: in place of all others, put back what any role has made
    type: bool
    default: false
  directory:
    description: where the manifest is
    type: path
    default: /var/lib/nagi-testbed
"""

RETURN = r"""
changes:
  description: what was (or would be) made or put back, a kind and a name each
  type: list
  elements: str
  returned: always
kept:
  description: what was not put back, or not overwritten without a copy, and why
  type: list
  elements: str
  returned: always
lacking:
  description: kernel modules that the kernel does not have
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    Manifest,
    ManifestError,
)
from ansible_collections.nagi.testbed.plugins.module_utils.things import (
    KINDS,
    UNITS,
    Failed,
    File,
    Group,
    Package,
    System,
    Thing,
    Unit,
)

NAMED = {"type": "list", "elements": "str", "default": []}
PATHS = {"type": "list", "elements": "path", "default": []}


def several(**options: dict) -> dict:
    return {"type": "list", "elements": "dict", "default": [], "options": options}


TEXT = {"type": "str"}
PATH = {"type": "path", "required": True}
NAME = {"type": "str", "required": True}
ARGUMENTS = {
    "role": TEXT,
    "packages": NAMED,
    "debs": several(name=NAME, source={"type": "path"}, sha256=TEXT),
    "stopped": NAMED,
    "groups": NAMED,
    "users": several(name=NAME, group=NAME, comment={"type": "str", "default": ""}),
    "directories": several(
        path=PATH,
        mode={"type": "str", "default": "0755"},
        contents={"type": "bool", "default": False},
    ),
    "journals": PATHS,
    "files": several(
        path=PATH,
        content=TEXT,
        source={"type": "path"},
        sha256=TEXT,
        mode={"type": "str", "default": "0644"},
        read_by=NAMED,
        validate=NAMED,
    ),
    "overrides": several(path=PATH, group=NAME, mode=NAME, capabilities=NAME),
    "sysctls": {"type": "dict", "default": {}},
    "modules": NAMED,
    "units": NAMED,
    "start": {"type": "bool", "default": True},
    "absent": {"type": "bool", "default": False},
    "directory": {"type": "path", "default": "/var/lib/nagi-testbed"},
}


def wanted_things(system: System, given: dict) -> list[Thing]:
    """What the role wants, in the order in which it is made."""
    named = {
        "package": [(name, {}) for name in given["packages"]],
        "deb": [(each["name"], each) for each in given["debs"]],
        "stopped": [(name, {}) for name in given["stopped"]],
        "group": [(name, {}) for name in given["groups"]],
        "user": [(each["name"], each) for each in given["users"]],
        "directory": list(_directories(given)),
        "journal": [(path, {}) for path in given["journals"]],
        "file": [(each["path"], each) for each in given["files"]],
        "override": [(each["path"], each) for each in given["overrides"]],
        "sysctl": [(name, {"value": str(value)}) for name, value in given["sysctls"].items()],
        "module": [(name, {}) for name in given["modules"]],
        "unit": [(name, {}) for name in given["units"]],
    }
    return [KINDS[kind](system, name, wanted) for kind in KINDS for name, wanted in named[kind]]


def _directories(given: dict):
    """Those that are wanted, and those above them and above files that nobody else has made."""
    said = {each["path"].rstrip("/"): each for each in given["directories"]}
    needed = {}
    for path in (*said, *(os.path.dirname(each["path"]) for each in given["files"])):
        above = path
        parents = []
        while above not in ("", "/") and (above in said or not os.path.isdir(above)):
            parents.append(above)
            above = os.path.dirname(above)
        for each in reversed(parents):
            needed.setdefault(each, said.get(each, {}))
    return needed.items()


class Changes:
    """What one call of the module does to a host."""

    def __init__(self, module: AnsibleModule, manifest: Manifest) -> None:
        self._module = module
        self._given = module.params
        self._manifest = manifest
        self._system = System(module.run_command, manifest, self._given["start"])
        self._checking = module.check_mode
        self.changes: list[str] = []
        self.kept: list[str] = []
        self.lacking: list[str] = []
        self.diff: list[dict] = []
        self._files_changed: list[str] = []
        self._restarts: list[str] = []

    def make(self) -> None:
        """Has the role's things as they are wanted, and what it had besides put back."""
        role = self._given["role"]
        wanted = wanted_things(self._system, self._given)
        names = {(thing.kind, thing.name) for thing in wanted}
        gone = [
            entry
            for entry in self._manifest.things
            if role in entry["roles"]
            and (entry["kind"], entry["name"]) not in names
            # Directories are made for what is below them.
            and not (entry["kind"] == "directory" and self._needed(entry["name"], names))
        ]
        # What cannot be had leaves what was there before as it is.
        packages = [thing for thing in wanted if isinstance(thing, Package)]
        self._make_all(packages)
        # A group can only go when its users have another.
        groups = [entry for entry in gone if entry["kind"] == Group.kind]
        self._put_back([entry for entry in gone if entry not in groups], role)
        self._make_all([thing for thing in wanted if not isinstance(thing, (Package, Unit))])
        self._put_back(groups, role)
        self._reload()
        self._restart()
        units = [thing for thing in wanted if isinstance(thing, Unit)]
        running = [unit for unit in units if (unit.look() or {}).get("active")]
        self._make_all(units)
        if self._files_changed and not self._checking:
            for unit in running:
                unit.restart()
        self.lacking = [note for thing in wanted if (note := thing.notes())]

    @staticmethod
    def _is_there(file: File) -> bool:
        """Whether the file's new content is at hand, which it is if it is to change."""
        return file.wanted.get("content") is not None or file.wanted.get("source") is not None

    @staticmethod
    def _needed(directory: str, names: set) -> bool:
        return any(
            name.startswith(directory + "/")
            for kind, name in names
            if kind in ("file", "directory", "journal")
        )

    def _make_all(self, things: list[Thing]) -> None:
        """Notes what is to be changed, then changes it."""
        found = {thing: thing.look() for thing in things}
        differing = [thing for thing in things if thing.differs(found[thing])]
        for thing in things:
            self._note(thing, found[thing], thing in differing)
        if differing and not self._checking:
            self._manifest.save()
        for thing in differing:
            self.changes.append(f"{thing.kind} {thing.name}")
            if self._module._diff and isinstance(thing, File) and self._is_there(thing):
                before, after = thing.difference(found[thing])
                heading = {"before_header": thing.name, "after_header": thing.name}
                self.diff.append({**heading, "before": before, "after": after})
            if isinstance(thing, File):
                self._files_changed.append(thing.name)
                self._restarts += thing.wanted["read_by"]
            if not self._checking:
                thing.make(found[thing])

    def _note(self, thing: Thing, found, differs: bool) -> None:
        """Notes a thing that nagi makes, or that another role has made and this one wants, too."""
        role = self._given["role"]
        entry = self._manifest.find(thing.kind, thing.name)
        if entry is None:
            if not differs or self._checking:
                return
            entry = {
                "kind": thing.kind,
                "name": thing.name,
                "roles": [],
                "before": thing.save(found),
                "ours": [],
                "units": self._given["units"] + thing.wanted.get("read_by", []),
            }
            self._manifest.things.append(entry)
        if role not in entry["roles"] and not self._checking:
            entry["roles"].append(role)
            if not differs:
                self._manifest.save()
        if differs and not self._checking:
            if isinstance(thing, File) and thing.edited(found, entry):
                thing.save(found)
                copy = os.path.join(self._manifest.directory, "saved", found.get("sha256", ""))
                self.kept.append(f"{thing.name}: it was edited since nagi wrote it; that is {copy}")
            ours = thing.ours()
            if ours not in entry["ours"]:
                entry["ours"].append(ours)

    def remove(self) -> None:
        """Puts back everything."""
        self._put_back(list(self._manifest.things), None)
        if not self._checking and not self._manifest.things:
            self._manifest.remove()

    def _put_back(self, entries: list[dict], role: str | None) -> None:
        """Puts things back, the last first; those that other roles want stay."""
        failures = []
        for entry in reversed(entries):
            others = [other for other in entry["roles"] if other != role] if role else []
            if others:
                if not self._checking:
                    entry["roles"] = others
                    self._manifest.save()
                continue
            self.changes.append(f"put back: {entry['kind']} {entry['name']}")
            if self._checking:
                continue
            rest = [each for each in self._manifest.things if each is not entry]
            thing = KINDS[entry["kind"]](self._system, entry["name"])
            try:
                kept = thing.put_back(entry["before"], entry["ours"], rest)
            except (Failed, OSError) as error:
                failures.append(f"{entry['kind']} {entry['name']}: {error}")
                continue
            if kept:
                self.kept.append(kept)
            if entry["kind"] == "file":
                self._files_changed.append(entry["name"])
                self._restarts += entry["units"]
            self._manifest.things.remove(entry)
            self._manifest.save()
        if role is None or self._restarts:
            self._reload()
            self._restart()
        if failures:
            raise Failed("cannot be put back: " + "; ".join(failures))

    def _reload(self) -> None:
        """Has systemd know its units' files."""
        changed = any(path.startswith(UNITS + "/") for path in self._files_changed)
        if changed and self._given["start"] and not self._checking:
            self._system.systemctl("daemon-reload")

    def _restart(self) -> None:
        """Has the distribution's services read their own files again."""
        for name in dict.fromkeys(self._restarts):
            state = Unit(self._system, name).look()
            if self._given["start"] and not self._checking and state and state["active"]:
                self._system.systemctl("restart", name)
        self._restarts = []


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_one_of=[("role", "absent")],
    )
    directory = module.params["directory"]
    nothing = not os.path.isdir(directory)
    reading = module.check_mode or (module.params["absent"] and nothing)
    done = None
    try:
        with Manifest(directory, reading=reading) as manifest:
            done = Changes(module, manifest)
            if not module.params["absent"]:
                done.make()
            elif not nothing:
                done.remove()
    except (ManifestError, Failed, OSError) as error:
        module.fail_json(
            msg=str(error),
            changed=bool(done and done.changes and not module.check_mode),
            kept=done.kept if done else [],
        )
    for each in done.kept:
        module.warn(each)
    module.exit_json(
        changed=bool(done.changes),
        changes=done.changes,
        kept=done.kept,
        lacking=done.lacking,
        diff=[*done.diff, {"prepared": "".join(f"{each}\n" for each in done.changes)}],
    )


if __name__ == "__main__":
    main()
