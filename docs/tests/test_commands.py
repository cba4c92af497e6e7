# SPDX-License-Identifier: Apache-2.0
"""Commands in README.md and the manuals run as printed.

The shell blocks of a page run in order, from the root of a clone of the checkout's HEAD with its
.venv. Each runs in a shell that ends at the first failure, with .venv/bin on PATH. A YAML block
with a title is first written to the file that the title names. A comment right before a block
specifies its needs:

    <!-- runs: needs root -->    network namespaces of this machine
    <!-- runs: slow -->          minutes: only in `make test-slow`
    <!-- runs: real time -->     an idle machine: after late runs, all further blocks with this
                                 comment are skipped, and the test reports it; slow
    <!-- runs: radio -->         GNU Radio and nagi-sdr; slow
    <!-- runs: hosts -->         lab.yml with hosts that are reached over SSH; slow
    <!-- runs: new hosts -->     lab.yml with hosts that are not provisioned; slow
    <!-- not run: REASON -->     it cannot be run here
    <!-- printed above -->       (a block of text) the last shell block prints these lines; numbers
                                 may differ

A block without such a comment needs the virtual lab at most.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from controller import USER_ID, Controller
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from nagi.labs import guest_kernel
from nagi_contracts import paths
from provisioning import write_inventory
from ssh_hosts import SshHosts, require_ssh_hosts
from throw_away import Host, boot_host

__all__ = ["boot_host"]

NEEDS = ("needs root", "slow", "real time", "radio", "hosts", "new hosts")
SHELL, OTHER = ("sh",), ("yaml", "json", "text", "mermaid")
LINKS = {"wired": ("S", "N"), "wireless": ("N", "D")}  # links of the experiment in real-hosts.md
NEW_HOSTS: dict[str, dict[str, object]] = {
    "alice": {"nagi_node": "S", "nagi_links": {"wired": "enp2s0"}},
    "heron": {"nagi_node": "emulator", "nagi_links": {"wired": {"S": "enp2s0", "N": "enp3s0"}}},
}
# The output of `nagi run` if the machine was too busy for real time.
_LATE = re.compile(r"[1-9][0-9]* invalid, 0 failed|were late")
_PRINTED = "<!-- printed above -->"
_COMMENT = re.compile(r"<!-- (runs|not run): (.+?) -->")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    title: str | None  # the file to which the block is written
    needs: frozenset[str]
    not_run: str | None  # the reason
    printed: bool = False  # whether the previous shell block prints these lines

    @property
    def position(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    """Return all blocks of a page.

    Raises:
        ValueError: A block has no known language, or an unknown need.
    """
    name = str(page.relative_to(paths.ROOT))
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    blocks = []
    for previous, token in zip([None, *tokens], tokens, strict=False):
        if token.type not in ("fence", "code_block"):
            continue
        assert token.map is not None
        line = token.map[0] + 1
        language, _, rest = token.info.partition(" ")
        if language not in SHELL + OTHER:
            known = ", ".join(SHELL + OTHER)
            raise ValueError(f"{name}:{line}: a block of {language or 'nothing'}; one of: {known}")
        comment = previous.content.strip() if previous is not None else ""
        match = _COMMENT.fullmatch(comment)
        needs = match[2].split(", ") if match is not None and match[1] == "runs" else []
        if not set(needs) <= set(NEEDS):
            raise ValueError(f"{name}:{line}: needs {', '.join(needs)}; known: {', '.join(NEEDS)}")
        title = _TITLE.search(rest)
        blocks.append(
            Block(
                page=name,
                line=line,
                language=language,
                text=token.content,
                title=title[1] if title else None,
                needs=frozenset(needs),
                not_run=match[2] if match is not None and match[1] == "not run" else None,
                printed=comment == _PRINTED,
            )
        )
    return blocks


PAGES = [
    paths.ROOT / "README.md",
    paths.P4 / "README.md",
    *sorted((paths.ROOT / "docs").glob("*.md")),
]
BLOCKS = {str(page.relative_to(paths.ROOT)): read_blocks(page) for page in PAGES}
ALL = [block for blocks in BLOCKS.values() for block in blocks if block.language in SHELL]
HOSTS = frozenset({"hosts", "new hosts"})


def find_pages(condition: Callable[[Block], bool]) -> list[str]:
    return list(dict.fromkeys(block.page for block in ALL if condition(block)))


def is_quick(block: Block) -> bool:
    return block.not_run is None and block.needs <= {"needs root"}


def is_slow(block: Block) -> bool:
    slow = {"slow", "real time", "radio"}
    return block.not_run is None and bool(block.needs & slow) and not block.needs & HOSTS


class TooBusy(Exception):
    """The error of a block that needs real time, and whose runs were late."""


def list_slow_pages() -> list[Any]:
    """Return the slow pages as parameters; those with radios need what `make sdr` installs."""
    has_radio = paths.executable("nagi-sdr").exists()
    skip = pytest.mark.skipif(not has_radio, reason="no nagi-sdr: `make sdr` builds it")
    radio_pages = find_pages(lambda block: "radio" in block.needs)
    return [
        pytest.param(page, marks=[pytest.mark.radio, skip] if page in radio_pages else [])
        for page in find_pages(is_slow)
    ]


needs_lab = pytest.mark.skipif(
    guest_kernel.read_installed() is None, reason="no guest kernel: `make virtual-lab` builds it"
)


def make_clone(target: Path) -> Path:
    """Clone the checkout's HEAD, and link its .venv."""
    git = ["git", "-c", "safe.directory=*", "-c", "advice.detachedHead=false"]
    subprocess.run([*git, "clone", "-q", "--shared", paths.ROOT, target], check=True)
    (target / ".venv").symlink_to(sys.prefix)
    return target


def make_environment(home: Path) -> dict[str, str]:
    """Make the environment of a reader's shell with its own home directory.

    For root there is always a program sudo, even if sudo is not installed.
    """
    programs = home / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and shutil.which("sudo") is None:
        (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (programs / "sudo").chmod(0o755)
    dropped = ("SUDO_", "XDG_", "PYTEST_", "ANSIBLE_", "COV_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    path = f"{sys.prefix}/bin:{programs}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(home), "TERM": "dumb", "NO_COLOR": "1"}


def run_blocks(
    blocks: Iterable[Block],
    clone: Path,
    variables: Mapping[str, str],
    get_prefix: Callable[[Block], Sequence[object]] = lambda _: (),
) -> None:
    """Write, run and compare blocks in order.

    At the end, the test is skipped if the machine was too busy for some blocks.

    Args:
        blocks: The blocks of a page.
        clone: The directory in which they run.
        variables: Their environment.
        get_prefix: Returns the command line that runs a block's shell.
    """
    output: str | None = ""  # None: the machine was too busy for the last shell block
    busy: TooBusy | None = None
    for block in blocks:
        if block.title is not None:
            assert not Path(block.title).is_absolute(), block.position
            (clone / block.title).write_text(block.text, encoding="utf-8")
        if block.printed and output is not None:
            lines = block.text.strip().splitlines()
            shapes = {_normalise(line) for line in output.splitlines()}
            missing = [line for line in lines if _normalise(line) not in shapes]
            assert not missing, f"{block.position}: not printed: {missing}:\n{output}"
        if block.language in SHELL:
            output = None
            if not (busy and "real time" in block.needs):
                try:
                    output = _run(block, clone, variables, get_prefix(block))
                except TooBusy as error:
                    busy = error
    if busy is not None:
        pytest.skip(f"too busy for real time: {busy}")


def _run(block: Block, clone: Path, variables: Mapping[str, str], prefix: Sequence[object]) -> str:
    """Run a block, and return its output."""
    shell = ["env", "-C", clone, "bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(
        [*map(str, prefix), *map(str, shell)],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # signals to the block's process group do not reach the tests
    )
    ended = f"{block.position} ended with {done.returncode}"
    if "real time" in block.needs and done.returncode == 1 and _LATE.search(done.stdout):
        raise TooBusy(ended)
    assert done.returncode == 0, f"{ended}:\n{block.text}\n{done.stdout}"
    return done.stdout


def _normalise(line: str) -> str:
    """Replace the numbers of a line by 0, and the widths of its columns by one space."""
    return " ".join(re.sub(r"[0-9]+", "0", line).replace("━", "").split())


def select_blocks(page: str, condition: Callable[[Block], bool]) -> list[Block]:
    """Return the shell blocks of a page that meet a condition, and all blocks that are no shell's.

    Blocks that need root are left out if the tests do not run as root.
    """
    is_root = os.geteuid() == 0
    blocks: list[Block] = []
    is_selected = False  # the last shell block
    for block in BLOCKS[page]:
        if block.language in SHELL:
            is_selected = condition(block) and (is_root or "needs root" not in block.needs)
        if is_selected or (block.language not in SHELL and not block.printed):
            blocks.append(block)
    return blocks


def run_here(blocks: list[Block], directory: Path) -> None:
    """Run blocks on this machine.

    Blocks that need root run in namespaces of their own, so that they neither disturb others nor
    outlive the test.
    """
    clone, variables = make_clone(directory / "nagi"), make_environment(directory / "home")
    with ExitStack() as stack:
        root: list[str] = []
        if any("needs root" in block.needs for block in blocks):
            root = stack.enter_context(Controller(root=True)).command()
        run_blocks(
            blocks, clone, variables, lambda block: root if "needs root" in block.needs else ()
        )


@pytest.mark.virtual
@needs_lab
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", find_pages(is_quick))
def test_commands_run_as_printed(page: str, tmp_path: Path) -> None:
    run_here(select_blocks(page, is_quick), tmp_path)


@pytest.mark.slow
@needs_lab
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", list_slow_pages())
def test_slow_commands_run_as_printed(page: str, tmp_path: Path) -> None:
    """Run all blocks of the page, because they may depend on previous ones."""
    run_here(select_blocks(page, lambda block: is_quick(block) or is_slow(block)), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", find_pages(lambda block: "hosts" in block.needs))
def test_commands_for_hosts_run_as_printed(page: str) -> None:
    """Run the blocks as an ordinary user, with hosts that are only SSH addresses."""
    require_ssh_hosts()
    with SshHosts(links=LINKS) as hosts:
        clone = make_clone(hosts.home / "nagi")
        # Namespaces have no systemd of their own, so they are provisioned like disk images.
        image = {"nagi_start_services": False, "nagi_clock": "none"}
        inventory = {"all": {"vars": image, **hosts.make_inventory()["all"]}}
        (clone / "lab.yml").write_text(yaml.safe_dump(inventory))
        variables = make_environment(hosts.home) | {"TMPDIR": str(hosts.temporary)}
        for path in (clone, *clone.rglob("*"), hosts.home / "bin"):
            os.chown(path, USER_ID, USER_ID, follow_symlinks=False)
        blocks = select_blocks(page, lambda block: "hosts" in block.needs)
        run_blocks(blocks, clone, variables, lambda _: hosts.command())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", find_pages(lambda block: "new hosts" in block.needs))
def test_commands_for_new_hosts_run_as_printed(
    page: str, boot_host: Callable[[], Host], tmp_path: Path
) -> None:
    clone, variables = make_clone(tmp_path / "nagi"), make_environment(tmp_path / "home")
    machines = {name: boot_host() for name in NEW_HOSTS}
    for name, interface in (("alice", "enp2s0"), ("heron", "enp2s0"), ("heron", "enp3s0")):
        veth = f"ip link add {interface} type veth peer name far-{interface}"
        machines[name].run(*veth.split())
    write_inventory(clone / "lab.yml", machines, NEW_HOSTS)
    run_blocks(select_blocks(page, lambda block: "new hosts" in block.needs), clone, variables)


@pytest.mark.parametrize(
    "block", [b for b in ALL if b.not_run is not None], ids=lambda block: block.position
)
def test_what_is_not_run_says_why(block: Block) -> None:
    assert block.not_run is not None
    pytest.skip(f"{block.text.splitlines()[0].strip()}: {block.not_run}")


def test_a_busy_machine_spoils_only_what_needs_real_time(tmp_path: Path) -> None:
    late = Block("x.md", 1, "sh", "echo 1 valid, 2 invalid, 0 failed; exit 1", None,
                 frozenset({"real time"}), None)  # fmt: skip
    follows = Block("x.md", 2, "sh", "exit 5", None, frozenset({"real time"}), None)
    printed = Block("x.md", 2, "text", "never printed", None, frozenset(), None, printed=True)
    other = Block("x.md", 3, "sh", "touch ran", None, frozenset(), None)
    with pytest.raises(pytest.skip.Exception, match=r"x\.md:1 ended with 1"):
        run_blocks([late, printed, follows, printed, other], tmp_path, make_environment(tmp_path))
    assert (tmp_path / "ran").exists()
    failed = Block("x.md", 4, "sh", "echo 0 valid, 1 invalid, 1 failed; exit 1", None,
                   frozenset({"real time"}), None)  # fmt: skip
    with pytest.raises(AssertionError, match=r"x\.md:4 ended with 1"):
        run_blocks([failed], tmp_path, make_environment(tmp_path))


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    """Check that a block ends at its first failure, and that the error names its line."""
    page = paths.ROOT / "docs" / "sample.md"
    failing = Block(str(page), 7, "sh", "false\ntrue\n", None, frozenset(), None)
    with pytest.raises(AssertionError, match=r"sample\.md:7 ended with 1"):
        run_blocks([failing], tmp_path, make_environment(tmp_path))


def test_links_of_the_readme_lead_somewhere() -> None:
    """`mkdocs build --strict` checks the links of the manuals."""
    pages = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "ARCHITECTURE.md")
    for name in (*pages, "p4/README.md"):
        page = paths.ROOT / name
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            known = target.startswith("https://") or (page.parent / target).exists()
            assert known, f"{name}: no such file: {target}"


def test_snippets_of_experiments_keep_to_the_schema() -> None:
    """Check that YAML blocks have the keys and values of an experiment, a flow or a link."""
    schema = json.loads((paths.SCHEMAS / "experiment.schema.json").read_text())
    objects = (schema["$defs"]["Flow"], schema["$defs"]["Link"], schema)
    known = {key: value for part in objects for key, value in part["properties"].items()}
    snippets = [b for blocks in BLOCKS.values() for b in blocks if b.language == "yaml"]
    assert len(snippets) > 10
    for block in snippets:
        for key, value in (yaml.safe_load(block.text) or {}).items():
            if key == "all":  # an inventory
                continue
            assert key in known, f"{block.position}: {key}"
            part = {**known[key], "$defs": schema["$defs"]}
            errors = [error.message for error in Draft202012Validator(part).iter_errors(value)]
            assert not errors, f"{block.position}: {key}: {errors}"
