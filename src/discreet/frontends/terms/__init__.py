"""The language that SQL and the chain share: terms, their positions in the text, and constants."""
