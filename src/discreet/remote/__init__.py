"""A curator on a server, with the surface of a curator at home. It needs neither an engine nor a reader of SQL here."""
