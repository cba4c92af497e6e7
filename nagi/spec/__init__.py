# SPDX-License-Identifier: Apache-2.0
"""Read experiment files: YAML to the validated points of a matrix."""
