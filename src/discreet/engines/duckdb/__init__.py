"""The engine on DuckDB: embedded, over files and frames."""
