"""The engine in memory: slow, plain Python over rows. It is the oracle for every other engine."""
