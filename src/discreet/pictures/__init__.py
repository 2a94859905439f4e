"""Pictures of privacy: two laws side by side, the loss between them, and what the best attack can make of it.

>>> from discreet.pictures import PictureTerms, make_pair, write_text
>>> print(write_text(make_pair("rr", PictureTerms(epsilon=1)), width=60).splitlines()[0])
randomized response: the truth with 73.1%, ε = 1
"""

from __future__ import annotations

from discreet.pictures.curves import draw_curves
from discreet.pictures.figure import FORMATS, draw_figure, encode_figure, save_figure
from discreet.pictures.law_pair import LawPair
from discreet.pictures.subjects import SUBJECTS, PictureTerms, make_pair
from discreet.pictures.text import write_text

__all__ = [
    "FORMATS",
    "SUBJECTS",
    "LawPair",
    "PictureTerms",
    "draw_curves",
    "draw_figure",
    "encode_figure",
    "make_pair",
    "save_figure",
    "write_text",
]
