"""A data-frame chain to terms."""
