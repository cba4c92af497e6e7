# SPDX-License-Identifier: Apache-2.0
"""Executes runs in virtual time, and computes metrics, on the workers of a Dask cluster."""
