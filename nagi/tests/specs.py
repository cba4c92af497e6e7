# SPDX-License-Identifier: Apache-2.0
"""Define experiment files for tests; tests of the file format change a line of GOOD."""

HEAD = """\
schema_version: 1
name: test
title: A test
seed: 1
nodes: {S: host, N: router, D: host}
links:
"""
GOOD = (
    HEAD
    + """\
  wired: {between: [S, N], rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp}
  radio:
    between: [N, D]
    rate: $capacity
    delay: 5 ms
    queue: 20 packets
    forward:
      loss: {model: poisson, rate: $loss}
flows:
  bulk: {from: S, to: D, scheme: $scheme}
duration: 10 s
matrix:
  loss: [0 %, 1 %]
  capacity: [10 Mb/s, 20 Mb/s]
  scheme: [newreno, cubic]
report: {x: capacity, panels: loss}
variants:
  quick:
    duration: 2 s
    matrix:
      capacity: [5 Mb/s]
"""
)


def two_links(
    name: str,
    wired: str,
    radio: str,
    bulk: str,
    rest: str,
    *,
    node: str = "router",
    radio_name: str = "radio",
) -> str:
    """Return an experiment file with one flow from S to D over a node N.

    Args:
        name: Name of the experiment.
        wired: Settings of the link from S to N.
        radio: Settings of the link from N to D.
        bulk: Settings of the flow.
        rest: Further keys, such as the matrix.
        node: Kind of N.
        radio_name: Name of the link from N to D.
    """
    return f"""\
schema_version: 1
name: {name}
title: A sender, a {node} and a receiver
seed: 7
nodes: {{S: host, N: {node}, D: host}}
links:
  wired: {{between: [S, N], {wired}, queue: 1 bdp}}
  {radio_name}: {{between: [N, D], {radio}}}
flows:
  bulk: {{from: S, to: D, {bulk}}}
{rest}"""
