# SPDX-License-Identifier: Apache-2.0
"""Results in other forms: text tables, pandas and Arrow, HTML, networkx."""
