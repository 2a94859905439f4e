"""Publish: a release that is paid for once, and then answers for ever: tables, synthetic rows, and their errors."""
