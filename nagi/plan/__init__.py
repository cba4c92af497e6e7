# SPDX-License-Identifier: Apache-2.0
"""Run plans: what a run sets, by the point that it is of."""
