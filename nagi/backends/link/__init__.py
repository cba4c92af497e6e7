# SPDX-License-Identifier: Apache-2.0
"""The backend `link`: links that nagi-link emulates."""
