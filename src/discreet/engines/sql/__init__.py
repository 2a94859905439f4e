"""What every SQL engine shares: a bounded question as common table expressions."""
