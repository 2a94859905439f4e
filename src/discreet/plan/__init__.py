"""Questions as immutable plans: types, expressions, the functions there are, and what they mean.

``types`` and ``expressions`` are the values; ``functions`` is the list of what may be used; ``evaluate`` says what each
means; ``catalog`` holds what is publicly known; ``nodes`` is a whole question; ``show`` prints one.
"""
