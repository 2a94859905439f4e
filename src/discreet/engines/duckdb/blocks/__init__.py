"""Bounding in NumPy, block by block: an optional capability of the DuckDB engine."""
