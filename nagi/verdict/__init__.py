# SPDX-License-Identifier: Apache-2.0
"""The certificate of a run."""
