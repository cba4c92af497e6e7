# SPDX-License-Identifier: Apache-2.0
"""Experiment files: YAML to validated points of a matrix."""
