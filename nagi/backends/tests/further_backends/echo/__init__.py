# SPDX-License-Identifier: Apache-2.0
"""A backend that is not nagi's: links with it have a program that writes down what they say."""
