"""The public release of the ASI trace (alibaba/clusterdata, cluster-trace-gpu-v2026): hourly Parquet tables, read as a stream.

Columns, value sets and definitions follow `docs/schema.md`, `docs/figure_reproduction.md` and `scripts/build_aggregates.py` of that
repository; the code is our own.
"""
