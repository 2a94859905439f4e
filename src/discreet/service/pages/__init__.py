"""Pages for people: drawn on the server from the documents that the API gives, and from nothing else."""
