# SPDX-License-Identifier: Apache-2.0
"""The commands of the console script, by topic.

Each command has a function for its options and one that runs it.
"""
