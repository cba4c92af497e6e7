# SPDX-License-Identifier: Apache-2.0
"""Tests of P4 programs in STF, the language of the tests that p4c ships: its statements
(language.py), the names of a program (program.py), a test on nagi-switch (execution.py), and p4c's
samples (conformance.py)."""
