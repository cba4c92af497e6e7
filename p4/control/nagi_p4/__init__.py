# SPDX-License-Identifier: Apache-2.0
"""One control interface for every P4 switch: see switch.py.

The package runs on Python 3.9 and imports only Python's standard library (and bmv2's own client, to
control bmv2): agents carry it to hosts on which nothing of nagi is installed.
"""
