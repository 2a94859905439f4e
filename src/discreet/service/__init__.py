"""The curator over HTTP: who asks, and how answers and refusals look on the wire. No privacy logic is here."""
