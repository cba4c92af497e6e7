# SPDX-License-Identifier: Apache-2.0
"""One control interface for every P4 switch: see switch.py.

The package runs on Python 3.9 and imports only Python's standard library, because agents take it to
hosts on which nothing of nagi is installed. To control bmv2, it also imports bmv2's own client.
"""
