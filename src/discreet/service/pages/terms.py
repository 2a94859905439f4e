"""What the words on the pages mean, each said once: the pages put the question beside the word."""

from __future__ import annotations

from enum import Enum

from discreet.service.pages.markup import Html, make_explanation


class PageTerm(Enum):
    """A word of the pages: the question that stands beside it, and the answer."""

    BUDGET = (
        "What is the budget?",
        "Every answer tells a little about each person, and many answers together tell more. The budget is the most "
        "that all answers together may tell, for ever. What somebody spends is gone for everybody who asks this "
        "dataset.",
    )
    LEFT = (
        "What do these signs mean?",
        "ε (epsilon) measures how much answers may tell about one of those who are protected: 0 is nothing, 1 is "
        "little, 10 is much. δ (delta) is the small chance that it is more. μ (mu) and ρ (rho) say the same for noise "
        "in the shape of a bell. Noise of different kinds adds up differently, so these signs do not fall in step with "
        "the share of the budget. Whoever does not need them can go by the share.",
    )
    ODDS = (
        "What does this sentence mean?",
        "Somebody wonders whether something is true about one of those who are protected, and would bet even money. "
        "The sentence says how sure the best guesser can become from all answers that this dataset will ever give.",
    )
    PROTECTED = (
        "What does this mean?",
        "Every answer has random noise in it. The noise is large enough to hide one of them, and small enough for "
        "numbers about many. What all answers together may tell is limited by the budget.",
    )
    ERROR = (
        "What does the error mean?",
        "How far the noise may move the answer. With ± 283 in 95 of 100 cases, the value without noise is at most 283 "
        "away from the answer, in 95 of 100 such answers. A larger share of the budget makes it smaller. Averages are "
        "more exact in larger groups, so some sizes are shown.",
    )
    PRICE = (
        "How do I choose?",
        "More budget gives less noise. Move either slider: the cost, or the error that you can live with. What is paid "
        "is gone for everybody who asks this dataset, so begin with little. The same question is free a second time.",
    )
    NOTES = (
        "What do these lines mean?",
        "Groups that everybody knows are always shown. Groups that come from the data are named only where enough "
        "people are in them, and a rare one may be missing. Limits and bounds keep one person from weighing too much: "
        "what lies beyond them counts less, which the error does not cover.",
    )
    ENDS = (
        "What are low and high?",
        "Between them lies the value without noise, as often as the level says.",
    )
    RECEIPT = (
        "What is a receipt for?",
        "It says what was asked, what it cost and where the charge stands in the log, so that somebody else can check "
        "it. It may be shown to others together with the answer.",
    )
    CAP = (
        "What are caps?",
        "The budget is for all. Caps below it say how much one question, one analyst or one month may take of it. They "
        "are written in the codebook, in the budget's own terms, and hold in the same moment as the charge.",
    )
    TOKEN = (
        "What is a token?",
        "A token is a key for one person or program: whose name questions bear, what they may do, and until when. An "
        "analyst asks; an auditor checks the log and sees no answers; an owner does both and looks after the dataset. "
        "A token that is revoked opens nothing from the next request on.",
    )
    CURVE = (
        "What does the line mean?",
        "Each step down is a question that was paid for. A step up is a budget that was made larger or begun anew, "
        "with its reason on record.",
    )
    HEAD = (
        "What is a head for?",
        "Who can write the whole log could write another one. A head names the last entry with a hash of all entries "
        "before it. Keep one elsewhere: if it is still in the log later, nothing before it was changed or removed.",
    )
    RELEASE = (
        "What is a release?",
        "Tables, and rows that are made up to fit them, that were paid for once. Whoever has one may use it as often "
        "as they like: nothing more is spent.",
    )


def explain(term: PageTerm) -> Html:
    """The question beside a word, with its answer folded away."""
    question, answer = term.value
    return make_explanation(question, answer)
