# SPDX-License-Identifier: Apache-2.0
"""What nagi makes or changes on a host, kind by kind: how it is looked at, made, and put back.

Of each kind there is a class with

    look()                what there is, as JSON; None if there is nothing
    differs(found)        whether it is not yet as it is wanted
    ours()                what is noted of what nagi makes
    make(found)           makes it so
    put_back(before, ours, rest)  has it as it was; what is kept instead, and why, or ""

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import fnmatch
import grp
import json
import os
import pwd
import re
import shutil
import stat
import time

from ansible_collections.nagi.testbed.plugins.module_utils.manifest import (
    Manifest,
    checksum_of,
    write_whole,
)

UNITS = "/etc/systemd/system"


class Failed(Exception):
    """Something cannot be made or put back; says what the system said."""


class System:
    """The host as commands see it. `started`: systemd runs there, and may start and stop."""

    def __init__(self, run_command, manifest: Manifest, started: bool) -> None:
        self._run_command = run_command
        self.manifest = manifest
        self.started = started
        self.environment = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        if not started:
            self.environment["SYSTEMD_OFFLINE"] = "1"

    def ask(self, *command: str) -> tuple[int, str, str]:
        """Runs a command; status, output, complaint. Without the program: 127."""
        try:
            status, out, error = self._run_command(
                list(command), environ_update=self.environment, handle_exceptions=False
            )
        except OSError as error:
            return 127, "", f"{command[0]}: {error.strerror}"
        return status, out, error

    def run(self, *command: str) -> str:
        """Runs a command that must succeed. Raises Failed."""
        status, out, error = self.ask(*command)
        if status != 0:
            raise Failed(f"{' '.join(command)}: {_last_lines(error or out)}")
        return out

    def systemctl(self, *words: str) -> None:
        self.run("systemctl", *words)


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return "; ".join(lines[-3:])


class Thing:
    """One thing of a host. `wanted`: how a role wants it; None to put it back."""

    kind = ""

    def __init__(self, system: System, name: str, wanted: dict | None = None) -> None:
        self.system = system
        self.name = name
        self.wanted = wanted or {}

    def save(self, found):
        """What is noted of what there was before."""
        return found

    def notes(self) -> str:
        """What cannot be made, which is no failure."""
        return ""

    def difference(self, found) -> tuple[str, str]:
        """Before and after, for --diff."""
        return "", ""


class Package(Thing):
    """A package, by a name or pattern that apt-get takes. Noted with it: those that come, and
    those that it drives out."""

    kind = "package"

    def look(self):
        status, out, _ = self.system.ask(
            "dpkg-query", "--show", "--showformat", r"${db:Status-Status}\n", self.name
        )
        return {} if status == 0 and "installed" in out.splitlines() else None

    def differs(self, found) -> bool:
        return found is None

    def ours(self):
        self._update()
        said = self.system.run("apt-get", *_APT, "--simulate", "install", self.name)
        return {"installed": _names("Inst", said), "removed": _names("Remv", said)}

    def _update(self) -> None:
        """apt's lists, if they are older than an hour. What fails here, installing says."""
        stamp = os.path.join(self.system.manifest.directory, "updated")
        if not os.path.exists(stamp) or time.time() - os.stat(stamp).st_mtime > 3600:
            self.system.ask("apt-get", *_APT, "update")
            write_whole(stamp, b"", 0o600)

    def make(self, found) -> None:
        self.system.run("apt-get", *_APT, "install", self.name)

    def put_back(self, before, ours, rest: list) -> str:
        wanted_by_others = {
            name
            for other in rest
            if other["kind"] in (Package.kind, Deb.kind)
            for each in other["ours"]
            for name in each["installed"]
        }
        installed = {name for each in ours for name in each["installed"]} - wanted_by_others
        present = sorted(
            name for name in installed if Package(self.system, name).look() is not None
        )
        driven_out = sorted(
            name
            for name in {name for each in ours for name in each["removed"]}
            if Package(self.system, name).look() is None
        )
        # What others need now stays: with it, apt would take them away, too.
        needed = [name for name in present if not self._is_free(name, installed)]
        going = [f"{name}-" for name in present if name not in needed]
        if going or driven_out:
            self.system.run("apt-get", *_APT, "--purge", "install", *driven_out, *going)
        if needed:
            return f"packages {' '.join(needed)}: others need them now"
        return ""

    def _is_free(self, name: str, ours: set) -> bool:
        said = self.system.run("apt-get", *_APT, "--simulate", "remove", name)
        return set(_names("Remv", said)) <= ours


class Deb(Package):
    """A package of nagi's own, which came from the controller as a file. The file is kept beside
    the manifest: by it is known whether the controller has another build."""

    kind = "deb"

    def _file(self) -> str:
        return os.path.join(self.system.manifest.directory, "debs", f"{self.name}.deb")

    def _draft(self) -> str:
        return os.path.join(self.system.manifest.directory, "debs", f"{self.name}.new.deb")

    def differs(self, found) -> bool:
        return found is None or not self._is_kept()

    def _is_kept(self) -> bool:
        path = self._file()
        return os.path.exists(path) and checksum_of(_read(path)) == self.wanted["sha256"]

    def ours(self):
        self._update()
        path = self.wanted.get("source") or self._file()
        said = self.system.run("apt-get", *_APT, "--simulate", "install", path)
        return {"installed": _names("Inst", said), "removed": _names("Remv", said)}

    def make(self, found) -> None:
        if not self._is_kept():
            os.makedirs(os.path.dirname(self._file()), mode=0o700, exist_ok=True)
            write_whole(self._draft(), _read(self.wanted["source"]), 0o600)
            self._install(self._draft())
            os.replace(self._draft(), self._file())
        else:
            self._install(self._file())

    def _install(self, path: str) -> None:
        # The same version may be another build.
        self.system.run("apt-get", *_APT, "--reinstall", "--allow-downgrades", "install", path)

    def put_back(self, before, ours, rest: list) -> str:
        kept = super().put_back(before, ours, rest)
        if os.path.exists(self._file()):
            os.unlink(self._file())
        return kept


_APT = (
    "--quiet",
    "--yes",
    "--no-install-recommends",
    "-o=DPkg::Lock::Timeout=300",
    "-o=Dpkg::Use-Pty=0",
)


def _names(action: str, simulated: str) -> list:
    return sorted(re.findall(rf"^{action} (\S+)", simulated, re.M))


class Stopped(Thing):
    """A service of the distribution that would be in nagi's way: stopped and disabled."""

    kind = "stopped"

    def look(self):
        return unit_state(self.system, self.name)

    def differs(self, found) -> bool:
        return found is not None and (found["enabled"] or found["active"])

    def ours(self):
        return {}

    def make(self, found) -> None:
        self.system.systemctl("disable", "--quiet", self.name)
        if self.system.started:
            self.system.systemctl("stop", self.name)

    def put_back(self, before, ours, rest: list) -> str:
        if unit_state(self.system, self.name) is None:
            return ""
        if before["enabled"]:
            self.system.systemctl("enable", "--quiet", self.name)
        if before["active"] and self.system.started:
            self.system.systemctl("start", self.name)
        return ""


class Unit(Thing):
    """A unit of systemd's that is enabled and runs."""

    kind = "unit"

    def look(self):
        return unit_state(self.system, self.name)

    def differs(self, found) -> bool:
        return (
            found is None or not found["enabled"] or (self.system.started and not found["active"])
        )

    def ours(self):
        return {}

    def make(self, found) -> None:
        self.system.systemctl("enable", "--quiet", self.name)
        if self.system.started and not (found and found["active"]):
            self._start("start")

    def restart(self) -> None:
        if self.system.started:
            self._start("restart")

    def _start(self, word: str) -> None:
        status, _, error = self.system.ask("systemctl", word, self.name)
        if status != 0:
            _, said, _ = self.system.ask(
                "journalctl", f"_SYSTEMD_UNIT={self.name}", "--lines=3", "--output=cat", "--quiet"
            )
            raise Failed(f"{self.name} does not run: {_last_lines(said or error)}")

    def put_back(self, before, ours, rest: list) -> str:
        if unit_state(self.system, self.name) is None:
            return ""
        if not (before and before["enabled"]):
            self.system.systemctl("disable", "--quiet", self.name)
        if not (before and before["active"]) and self.system.started:
            self.system.systemctl("stop", self.name)
        return ""


def unit_state(system: System, name: str) -> dict | None:
    """Whether a unit is enabled and active; None if there is no such unit."""
    if system.started:
        properties = ("LoadState", "UnitFileState", "ActiveState")
        _, out, _ = system.ask("systemctl", "show", f"--property={','.join(properties)}", name)
        found = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        if found.get("LoadState", "not-found") == "not-found":
            return None
        enabled = found.get("UnitFileState", "").startswith("enabled")
        return {"enabled": enabled, "active": found.get("ActiveState") in ("active", "activating")}
    status, out, _ = system.ask("systemctl", "is-enabled", name)
    if not out.strip() or out.strip() == "not-found":
        return None
    return {"enabled": status == 0, "active": False}


class Group(Thing):
    """A system group."""

    kind = "group"

    def look(self):
        try:
            return {"gid": grp.getgrnam(self.name).gr_gid}
        except KeyError:
            return None

    def differs(self, found) -> bool:
        return found is None

    def ours(self):
        return {}

    def make(self, found) -> None:
        self.system.run("groupadd", "--system", self.name)

    def put_back(self, before, ours, rest: list) -> str:
        if before is not None or self.look() is None:
            return ""
        self.system.run("groupdel", self.name)
        return ""


class User(Thing):
    """A system account that nobody logs in to."""

    kind = "user"

    def look(self):
        try:
            found = pwd.getpwnam(self.name)
            return {"group": grp.getgrgid(found.pw_gid).gr_name}
        except KeyError:
            return None

    def differs(self, found) -> bool:
        return found is None or found["group"] != self.wanted["group"]

    def ours(self):
        return {}

    def make(self, found) -> None:
        if found is None:
            options = ("--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell")
            self.system.run(
                *("useradd", *options, "/usr/sbin/nologin", "--gid", self.wanted["group"]),
                *("--comment", self.wanted["comment"], self.name),
            )
        else:
            self.system.run("usermod", "--gid", self.wanted["group"], self.name)

    def put_back(self, before, ours, rest: list) -> str:
        found = self.look()
        if found is None:
            return ""
        if before is None:
            self.system.run("userdel", self.name)
        elif found["group"] != before["group"]:
            self.system.run("usermod", "--gid", before["group"], self.name)
        return ""


class Directory(Thing):
    """A directory; with `contents`, all that is in it is nagi's."""

    kind = "directory"

    def look(self):
        return {} if os.path.isdir(self.name) else None

    def differs(self, found) -> bool:
        return found is None

    def ours(self):
        return {"contents": self.wanted.get("contents", False)}

    def make(self, found) -> None:
        os.mkdir(self.name)
        os.chmod(self.name, int(self.wanted.get("mode", "0755"), 8))

    def put_back(self, before, ours, rest: list) -> str:
        if before is not None or not os.path.isdir(self.name):
            return ""
        if any(each["contents"] for each in ours):
            shutil.rmtree(self.name)
            return ""
        try:
            os.rmdir(self.name)
        except OSError:
            return f"{self.name}: there is something in it that nagi did not make"
        return ""


class File(Thing):
    """A file, with its content and its mode."""

    kind = "file"

    def look(self):
        try:
            found = os.lstat(self.name)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return {"link": os.readlink(self.name)}
        if not stat.S_ISREG(found.st_mode):
            raise Failed(f"{self.name}: it is no file")
        return {
            "sha256": checksum_of(_read(self.name)),
            "mode": f"{stat.S_IMODE(found.st_mode):04o}",
            "uid": found.st_uid,
            "gid": found.st_gid,
        }

    def save(self, found):
        if found is None or "sha256" not in found:
            return found
        self.system.manifest.keep(_read(self.name))
        return {**found, "mtime_ns": os.stat(self.name).st_mtime_ns}

    def _content(self) -> bytes:
        if self.wanted.get("content") is not None:
            return self.wanted["content"].encode()
        return _read(self.wanted["source"])

    def _mode(self) -> str:
        return self.wanted.get("mode") or "0644"

    def ours(self):
        checksum = self.wanted.get("sha256") or checksum_of(self._content())
        return {"sha256": checksum, "mode": self._mode()}

    def differs(self, found) -> bool:
        ours = self.ours()
        return found is None or any(found.get(key) != ours[key] for key in ours)

    def edited(self, found, entry: dict) -> bool:
        """Whether somebody else has changed it since nagi wrote it."""
        known = [each["sha256"] for each in entry["ours"]]
        if entry["before"] is not None:
            known.append(entry["before"].get("sha256"))
        return found is not None and found.get("sha256") not in known

    def _validate(self) -> None:
        """Has a program look at it before it is where it belongs."""
        if not self.wanted.get("validate"):
            return
        draft = os.path.join(self.system.manifest.directory, os.path.basename(self.name))
        write_whole(draft, self._content(), int(self._mode(), 8))
        try:
            self.system.run(*(word.replace("%s", draft) for word in self.wanted["validate"]))
        except Failed as error:
            raise Failed(f"{self.name}: refused: {str(error).replace(draft, self.name)}") from None
        finally:
            os.unlink(draft)

    def make(self, found) -> None:
        self._validate()
        write_whole(self.name, self._content(), int(self._mode(), 8))

    def difference(self, found) -> tuple[str, str]:
        before = _text(_read(self.name)) if found is not None and "sha256" in found else ""
        return before, _text(self._content())

    def put_back(self, before, ours, rest: list) -> str:
        found = self.look()
        kept = ""
        if self.edited(found, {"ours": ours, "before": before}):
            kept = f"{self.name}: it was edited since nagi wrote it"
            if before is None or "sha256" not in before:
                return kept
            path = f"{self.name}.before-nagi"
            kept += f"; as it was before, it is {path}"
        else:
            path = self.name
        if before is None:
            if found is not None:
                self._stop_instances()
                os.unlink(self.name)
        elif "link" in before:
            if found != before:
                os.unlink(self.name)
                os.symlink(before["link"], self.name)
        else:
            content = self.system.manifest.kept(before["sha256"])
            write_whole(path, content, int(before["mode"], 8), before["uid"], before["gid"])
            os.utime(path, ns=(before["mtime_ns"], before["mtime_ns"]))
        return kept

    def _stop_instances(self) -> None:
        """Of a template that goes, what runs by it, and what would at the next boot."""
        template = os.path.basename(self.name)
        if os.path.dirname(self.name) != UNITS or not template.endswith("@.service"):
            return
        instances = template.replace("@.", "@*.")
        for directory, _, names in os.walk(UNITS):
            for name in fnmatch.filter(names, instances):
                if os.path.islink(os.path.join(directory, name)):
                    self.system.systemctl("disable", "--quiet", name)
        if self.system.started:
            self.system.systemctl("stop", instances)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes, sha256 {checksum_of(data)})\n"


class Override(Thing):
    """Owner, group, mode and capabilities of a file of a package, kept over upgrades
    (dpkg-statoverride; the capabilities only if something sets them again)."""

    kind = "override"

    def look(self):
        try:
            found = os.stat(self.name)
        except FileNotFoundError:
            return None
        _, override, _ = self.system.ask("dpkg-statoverride", "--list", self.name)
        _, capabilities, _ = self.system.ask("getcap", self.name)
        return {
            "override": override.strip(),
            "group": _group_name(found.st_gid),
            "mode": f"{stat.S_IMODE(found.st_mode):04o}",
            "capabilities": capabilities.strip().rpartition(" ")[2] if capabilities else "",
        }

    def _line(self) -> str:
        mode = self.wanted["mode"].lstrip("0")
        return f"root {self.wanted['group']} {mode} {self.name}"

    def differs(self, found) -> bool:
        return (
            found is None
            or found["override"] != self._line()
            or found["capabilities"] != self.wanted["capabilities"]
        )

    def ours(self):
        return {}

    def make(self, found) -> None:
        if found is None:
            raise Failed(f"{self.name}: it is not there")
        if found["override"] != self._line():
            self.system.run(
                *("dpkg-statoverride", "--update", "--force-statoverride-add", "--add", "root"),
                *(self.wanted["group"], self.wanted["mode"], self.name),
            )
        self.system.run("setcap", self.wanted["capabilities"], self.name)

    def put_back(self, before, ours, rest: list) -> str:
        found = self.look()
        if found is None or before is None:
            return ""
        if found["override"]:
            self.system.run("dpkg-statoverride", "--remove", self.name)
        if before["override"]:
            words = before["override"].split()[:3]
            self.system.run("dpkg-statoverride", "--add", *words, self.name)
        shutil.chown(self.name, "root", before["group"])
        os.chmod(self.name, int(before["mode"], 8))
        if before["capabilities"]:
            self.system.run("setcap", before["capabilities"], self.name)
        elif self.look()["capabilities"]:
            self.system.run("setcap", "-r", self.name)
        return ""


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


class Sysctl(Thing):
    """A setting of the running kernel. For boots to come, a file says it."""

    kind = "sysctl"

    def _path(self) -> str:
        return f"/proc/sys/{self.name.replace('.', '/')}"

    def look(self):
        try:
            return {"value": " ".join(_read(self._path()).decode().split())}
        except FileNotFoundError:
            return None

    def differs(self, found) -> bool:
        return found is None or found["value"] != self.wanted["value"]

    def ours(self):
        return {"value": self.wanted["value"]}

    def make(self, found) -> None:
        if self.system.started:
            self.system.run("sysctl", "-q", "-w", f"{self.name}={self.wanted['value']}")
            # sysctl ends well where the kernel refuses, too.
            if self.differs(now := self.look()):
                raise Failed(f"{self.name}: the kernel has {now}, and does not take {self.wanted}")

    def put_back(self, before, ours, rest: list) -> str:
        found = self.look()
        if before is None or found is None or not self.system.started:
            return ""
        if found not in ours:
            return f"{self.name}: it is {found['value']}, which nagi did not set"
        self.system.run("sysctl", "-q", "-w", f"{self.name}={before['value']}")
        return ""


class KernelModule(Thing):
    """A module of the kernel's that is loaded. A kernel need not have it."""

    kind = "module"

    def look(self):
        return {} if os.path.isdir(f"/sys/module/{self.name}") else None

    def differs(self, found) -> bool:
        return found is None and self._exists()

    def _exists(self) -> bool:
        return self.system.ask("modprobe", "--dry-run", "--quiet", self.name)[0] == 0

    def notes(self) -> str:
        return "" if self.look() is not None or self._exists() else self.name

    def ours(self):
        return {}

    def make(self, found) -> None:
        self.system.run("modprobe", self.name)

    def put_back(self, before, ours, rest: list) -> str:
        # One that is in use stays: the kernel has it as long as a connection needs it.
        self.system.ask("modprobe", "--remove", "--quiet", self.name)
        return ""


class Journal(Thing):
    """A file with commands that put back what the running kernel was told (see the module
    interfaces)."""

    kind = "journal"

    def look(self):
        return None

    def differs(self, found) -> bool:
        return self.system.manifest.find(self.kind, self.name) is None

    def ours(self):
        return {}

    def make(self, found) -> None:
        pass

    def put_back(self, before, ours, rest: list) -> str:
        try:
            undo = json.loads(_read(self.name))["undo"]
        except FileNotFoundError:
            return ""
        said = []
        for command in undo:
            status, out, error = self.system.ask(*command)
            if status != 0:  # as of an interface that is no longer there
                said.append(f"{' '.join(command)}: {_last_lines(error or out)}")
        os.unlink(self.name)
        return "; ".join(said)


# In the order in which they are made.
KINDS = {
    each.kind: each
    for each in (
        Package,
        Deb,
        Stopped,
        Group,
        User,
        Directory,
        Journal,
        File,
        Override,
        Sysctl,
        KernelModule,
        Unit,
    )
}
