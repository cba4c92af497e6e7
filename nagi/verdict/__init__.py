# SPDX-License-Identifier: Apache-2.0
"""Measures completed runs, and certifies that their links behaved as planned."""
