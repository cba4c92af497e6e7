# SPDX-License-Identifier: Apache-2.0
"""Tests of P4 programs in STF, the language of the tests that p4c ships.

The modules: statements as data (syntax.py) and their parser (language.py), the names of a program
(program.py), a test on nagi-switch (execution.py), p4c's samples (conformance.py), and a test on
bmv2 (reference.py).
"""
