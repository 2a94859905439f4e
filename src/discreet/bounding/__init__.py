"""From a question to a bounded one: facts, contribution limits, sensitivities. Nothing here looks at data."""
