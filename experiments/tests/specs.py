# SPDX-License-Identifier: Apache-2.0
"""The experiment that tests of the file format change a line of. Tests name its lines."""

GOOD = """\
schema_version: 1
name: test
title: A test
seed: 1
nodes: {S: host, N: router, D: host}
links:
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
