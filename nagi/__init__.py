# SPDX-License-Identifier: Apache-2.0
"""nagi: how much of what a path could carry does a TCP scheme achieve?"""
