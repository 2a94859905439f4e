"""Series: counts that grow by a day, a week or a month at a time, all of them under one charge.

``Curator.series`` makes one. ``mechanism`` adds the noise, ``frozen_counts`` keeps what was counted.
"""
