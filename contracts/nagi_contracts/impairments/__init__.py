# SPDX-License-Identifier: Apache-2.0
"""What links may do to packets. Each impairment is a module of its own: its settings, as experiment
files have them, its plan, as run plans and nagi-link's configuration have it, and what else must be
known of it. Its other half is the file of the same name in link-emulator/model."""
