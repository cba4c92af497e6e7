# SPDX-License-Identifier: Apache-2.0
"""An example of a backend outside nagi. A link has a word, which the program nagi-echo records."""
