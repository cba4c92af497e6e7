# SPDX-License-Identifier: Apache-2.0
"""Turn the points of an experiment into run plans."""
