# SPDX-License-Identifier: Apache-2.0
"""One control interface for every P4 switch: see switch.py.

Imports nothing but Python's standard library (and what comes with bmv2, to talk to it), and runs on
Python 3.9: agents have it with them on hosts where nothing of ours is installed.
"""
