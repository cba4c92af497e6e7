# SPDX-License-Identifier: Apache-2.0
"""Impairments of links: losses, jitter, queues, marks, and other effects on packets.

Each impairment is a module with two classes: the settings, as in experiment files, and the plan, as
in run plans and in nagi-link's configuration. nagi-link's model of an impairment is the file of the
same name in link-emulator/model.
"""
