# SPDX-License-Identifier: Apache-2.0
"""Reads the public release of the ASI trace as a stream: hourly Parquet tables (alibaba/clusterdata).

The release is the folder cluster-trace-gpu-v2026. Columns, values and definitions follow its
`docs/schema.md`, `docs/figure_reproduction.md` and `scripts/build_aggregates.py`; no code is
copied.
"""
