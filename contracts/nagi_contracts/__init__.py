# SPDX-License-Identifier: Apache-2.0
"""The formats that nagi's components hand to one another, with their units and errors. Every file
says its `schema_version`."""

from importlib.metadata import version

__version__ = version("nagi")
