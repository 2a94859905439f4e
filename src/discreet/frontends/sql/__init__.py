"""SQL to terms: an allow-list over the tree that sqlglot makes."""
