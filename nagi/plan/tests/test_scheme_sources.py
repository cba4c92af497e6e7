# SPDX-License-Identifier: Apache-2.0
"""Schemes of a user's own in C: what is compiled, and what is refused, by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import nagi
from nagi.plan import scheme_sources
from nagi.plan.scheme_objects import describe
from nagi.plan.scheme_sources import compile_scheme, find_source, parse_problems
from nagi.plan.schemes import find_scheme
from nagi_contracts.errors import InputError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nagi" / "schemes"


@pytest.fixture
def mine(tmp_path) -> Path:
    """Create a scheme from nagi's template."""
    done = nagi("new", "--scheme", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "mine.c"


def change(source: Path, old: str, new: str) -> None:
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def test_the_template_is_a_scheme_with_a_parameter(mine):
    described = describe(compile_scheme(mine))
    assert (described.scheme, described.events) == ("mine", True)
    assert described.parameters["keep"].default == 50
    assert "scheme: [mine.c, newreno]" in mine.with_name("mine.yaml").read_text()
    scheme = find_scheme("mine.c", lambda name: mine.with_name(name))
    assert scheme.congestion_control == "nagi_mine"
    assert scheme.object_file == compile_scheme(mine)
    # The headers' recovery is for connections without SACK.
    assert scheme.sysctls["net.ipv4.tcp_sack"] == 0


def test_it_is_compiled_once_for_each_content(mine, cache):
    made = compile_scheme(mine)
    before = made.stat().st_mtime_ns
    assert compile_scheme(mine) == made and made.stat().st_mtime_ns == before
    change(mine, "keep, 50,", "keep, 60,")
    again = compile_scheme(mine)
    assert again != made and describe(again).parameters["keep"].default == 60
    assert len(list(cache.iterdir())) == 2


def test_a_directory_holds_a_scheme_of_its_name_and_headers(mine):
    (mine.parent / "mine").mkdir()
    source = mine.rename(mine.parent / "mine" / "mine.c")
    change(source, '#include "glue/control.h"', '#include "glue/control.h"\n#include "own.h"')
    with pytest.raises(InputError, match=r"mine\.c:\d+: .own\.h. file not found"):
        compile_scheme(source.parent)
    (source.parent / "own.h").write_text("#define OWN 1\n")
    assert find_source(source.parent) == source
    assert describe(compile_scheme(source.parent)).scheme == "mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("left, left)", "lost, left)", r"mine\.c:\d+: use of undeclared identifier .lost."),
        ("NAGI_SCHEME(mine)", "NAGI_SCHEME(other)", r"mine\.c: its scheme is called other; give "
         r"it the name of the file: NAGI_SCHEME\(mine\)"),
        ("  __u32 min_rtt_us;", "  __u32 min_rtt_us, more[30];", "more than the kernel"),
        ('#include "glue/hooks.h"', "", r"mine\.c:\d+: .*"),
    ],
)  # fmt: skip
def test_what_does_not_compile_is_refused_by_file_and_line(mine, old, new, said):
    change(mine, old, new)
    with pytest.raises(InputError, match=said):
        _ = find_scheme("mine.c", lambda name: mine.with_name(name)).object_file
    done = nagi("plan", "mine.yaml", "--lab", "netns", cwd=mine.parent)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "mine.c" in done.stderr


@pytest.mark.parametrize("name", ["Mine", "2nd", "much_too_long", "a-b"])
def test_a_file_whose_name_no_scheme_can_have_is_refused(mine, name):
    source = mine.rename(mine.with_name(f"{name}.c"))
    with pytest.raises(InputError, match=f"{name} is no name of a scheme; use 1 to 10 of"):
        compile_scheme(source)
    assert nagi("new", "--scheme", name, cwd=mine.parent).returncode == 2


def test_without_a_compiler_it_says_what_to_install(mine, monkeypatch):
    monkeypatch.setenv("PATH", "/proc/nowhere")
    scheme_sources._read_compiler_version.cache_clear()
    change(mine, "keep, 50,", "keep, 61,")
    with pytest.raises(InputError, match=r"there is no clang, .* `apt-get install clang`"):
        compile_scheme(mine)


def test_errors_in_our_headers_are_at_the_user_s_file(mine):
    said = "/x/glue/hooks.h:12:3: error: own_grow is not defined\nmake: failed\n"
    (problem,) = parse_problems(said, mine)
    assert str(problem).startswith(
        f"{mine}: own_grow is not defined (hooks.h, line 12); correct it"
    )
    (problem,) = parse_problems("/x/nagi_mine.c:7:1: error: no\n", mine)
    assert str(problem).startswith(f"{mine}:7: no; correct it")


@pytest.mark.parametrize(
    "name",
    [
        "$(touch pwned).h", "$(shell touch pwned).h", "`touch pwned`.h", "a;touch pwned;.h",
        "a b.h", "'.h", '".h', "-o pwned.h", "a\npwned.h", "#.h",
    ],
)  # fmt: skip
def test_names_of_headers_never_reach_a_shell(mine, tmp_path, monkeypatch, name):
    """Check the names of headers even if nothing includes them.

    Formerly, the module's Makefile passed them to a shell, even in `nagi plan`.
    """
    monkeypatch.chdir(tmp_path)
    mine.with_name(name).write_text("")
    done = nagi("plan", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 2 and not list(tmp_path.rglob("*pwned"))
    assert "the kernel's build does not support this name of a header" in done.stderr


@pytest.mark.parametrize("directive", ['#include "{}"', '__asm__(".incbin \\"{}\\"");'])
def test_a_scheme_cannot_take_in_files_of_its_user(mine, tmp_path, directive):
    """Refuse includes: a scheme could publish a file by its events or in its packets."""
    planted = tmp_path / "planted"
    planted.write_text("int from_planted;\n")
    change(mine, '#include "glue/hooks.h"', f'#include "glue/hooks.h"\n{directive.format(planted)}')
    with pytest.raises(InputError, match=r"not found|[Nn]o such file|[Cc]ould not find"):
        compile_scheme(mine)
