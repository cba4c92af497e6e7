# SPDX-License-Identifier: Apache-2.0
"""nagi: how much of what a path could carry does a TCP scheme achieve?"""

from nagi_contracts import __version__ as __version__
