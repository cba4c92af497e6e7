# SPDX-License-Identifier: Apache-2.0
"""Impairments: what links do to packets.

Each impairment is a module with two classes: its settings, as in experiment files, and its plan, as
in run plans and nagi-link's configuration. Its model is the file of the same name in
link-emulator/model.
"""
