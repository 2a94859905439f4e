"""What was reserved, charged and released. ``ledger`` is the protocol; ``memory`` keeps it in a process."""
