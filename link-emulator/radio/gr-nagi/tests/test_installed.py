# SPDX-License-Identifier: Apache-2.0
"""Tests that Python, GNU Radio Companion and CMake find gr-nagi under its default prefix.

The prefix is /usr/local. gr-nagi is installed into a directory, which a sandbox mounts there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nagi_contracts.paths import ROOT

BUILD = ROOT / "build" / "sdr"
EXAMPLES = ROOT / "link-emulator" / "radio" / "gr-nagi" / "examples"
PREFIX = "/usr/local"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.radio,
    pytest.mark.skipif(not (BUILD / "build.ninja").is_file(), reason="`make sdr` builds gr-nagi"),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap for a sandbox"),
]
PROJECT = """\
cmake_minimum_required(VERSION 3.22)
project(mine CXX)
find_package(gnuradio-nagi 0.1 REQUIRED)
add_executable(mine mine.cc)
target_link_libraries(mine gnuradio::gnuradio-nagi)
"""
PROGRAM = """\
#include <gnuradio/nagi/channel.h>
#include <gnuradio/nagi/framing.h>
#include <gnuradio/nagi/packet_demux.h>

#include <iostream>

int main() {
  const auto channel = gr::nagi::channel::make({.sample_rate = 2e6, .snr_db = 20.0});
  gr::nagi::framing framing(gr::nagi::code_rate::rate_1_2, true, 100);
  const auto frame = framing.frame(7, std::vector<std::uint8_t>(100));
  const auto content = framing.deframe(frame);
  std::cout << channel->name() << ' ' << frame.size() << ' ' << content->sequence << '\\n';
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    """Install gr-nagi and return the directory that is to be mounted at /usr/local."""
    root = tmp_path_factory.mktemp("root")
    subprocess.run(
        ["cmake", "--install", str(BUILD), "--prefix", PREFIX],
        env={**os.environ, "DESTDIR": str(root)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    return root / PREFIX[1:]


def run_inside(prefix: Path, own: Path, *command: str) -> str:
    """Run a command with the prefix at /usr/local and return its output.

    `own` is the only other directory in which the command may write.
    """
    process = subprocess.run(
        [
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/dev/shm"),
            *("--proc", "/proc", "--ro-bind", str(prefix), PREFIX, "--bind", str(own), str(own)),
            *("--chdir", str(own), "--clearenv", "--setenv", "HOME", str(own)),
            *("--setenv", "PATH", os.defpath, *command),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_python_finds_the_module(prefix, tmp_path):
    program = "from gnuradio import nagi; print(nagi.__file__, nagi.framed_bytes(1500, '1/2'))"
    module_path, size = run_inside(prefix, tmp_path, "/usr/bin/python3", "-c", program).split()[-2:]
    assert module_path.startswith(f"{PREFIX}/lib/python3.")
    assert int(size) == 3024
    assert "nagi-sdr 0." in run_inside(prefix, tmp_path, f"{PREFIX}/bin/nagi-sdr", "--version")


def test_gnu_radio_companion_finds_the_blocks(prefix, tmp_path):
    run_inside(prefix, tmp_path, "grcc", "-o", str(tmp_path), str(EXAMPLES / "measure_symbols.grc"))
    assert "nagi.snr_evm_probe(" in (tmp_path / "measure_symbols.py").read_text()


def test_cmake_finds_the_library(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "mine.cc").write_text(PROGRAM)
    run_inside(prefix, tmp_path, "cmake", "-S", ".", "-B", "build", "-G", "Ninja")
    run_inside(prefix, tmp_path, "cmake", "--build", "build")
    # 100 bytes and 11 of the frame, with 6 bits of the tail, twice, in whole bytes.
    assert run_inside(prefix, tmp_path, "build/mine") == "channel 224 7\n"
