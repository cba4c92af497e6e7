# SPDX-License-Identifier: Apache-2.0
"""Links that nagi-link emulates."""
