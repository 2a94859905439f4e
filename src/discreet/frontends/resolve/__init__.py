"""From terms to a plan: names become columns, types are checked, and units stay apart."""
