# SPDX-License-Identifier: Apache-2.0
"""Write experiment files with one flow of an application."""

from __future__ import annotations

from pathlib import Path

SPEC = """\
schema_version: 1
name: test
title: A test
seed: 1
nodes: {S: host, D: host}
links:
  path: {between: [S, D], rate: RATE, delay: 20 ms, queue: QUEUE, forward: {loss: LOSS}}
flows:
  app: {from: S, to: D, scheme: $scheme, traffic: TRAFFIC}
duration: DURATION
matrix: {scheme: [cubic]}
report: {x: scheme}
"""


def write_spec(
    directory: Path,
    traffic: str,
    rate: str = "10 Mb/s",
    loss: str = "{model: none}",
    duration: str = "10 s",
    queue: str = "200 packets",
) -> Path:
    """Write an experiment file whose only flow has `traffic`, and return its path."""
    text = SPEC.replace("TRAFFIC", traffic).replace("RATE", rate).replace("LOSS", loss)
    text = text.replace("QUEUE", queue)
    spec = directory / "spec.yaml"
    spec.write_text(text.replace("DURATION", duration))
    return spec
