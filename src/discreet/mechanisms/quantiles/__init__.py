"""Quantiles and modes: mechanisms that choose a value instead of adding noise to a number."""
