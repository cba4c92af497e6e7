# SPDX-License-Identifier: Apache-2.0
"""Runs in virtual time, and metrics, on the workers of a Dask cluster."""
