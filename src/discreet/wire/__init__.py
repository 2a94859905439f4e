"""The door that speaks the protocol of PostgreSQL."""
