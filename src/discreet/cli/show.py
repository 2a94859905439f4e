"""Pictures from the shell: ``discreet show laplace --epsilon 0.5`` draws two laws, the loss, and the best attack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.option_groups import take_groups
from discreet.cli.output import OutputOptions, Printout

if TYPE_CHECKING:
    from discreet.pictures import LawPair

_COLUMNS = {"picture": "text", "output": "text", "p": "real", "q": "real", "loss": "real"}


@take_groups
def show(
    names: Annotated[
        list[str], typer.Argument(metavar="WHAT…", help="rr, laplace, gaussian, exponential, composition or group.")
    ],
    *,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The loss of one answer.")] = 1.0,
    rho: Annotated[float, typer.Option("--rho", help="The loss of Gaussian noise.")] = 0.125,
    sensitivity: Annotated[int, typer.Option("--sensitivity", help="How far one person moves the answer.")] = 1,
    times: Annotated[int, typer.Option("--times", help="Answers in a composition.")] = 10,
    group: Annotated[int, typer.Option("--group", help="People in a group.")] = 4,
    scores: Annotated[str, typer.Option("--scores", help="Scores of candidates, with commas.")] = "3,3,1,0",
    output: OutputOptions,
) -> None:
    """Draw a mechanism: both laws, the loss, the best attack.

    Several names make several pictures of one figure. With --out laws.svg (or .png, .pdf) it is written as a figure,
    which needs the extra plots. For example: discreet show laplace gaussian --epsilon 0.5
    """
    from discreet.pictures import FORMATS, PictureTerms, make_pair, save_figure

    terms = PictureTerms(epsilon, rho, sensitivity, times, group, tuple(_read_scores(scores)))
    pairs = [make_pair(name, terms) for name in names]
    if output.out is not None and output.out.suffix.lower() in FORMATS:
        save_figure(output.out, *pairs)
        return
    output.print(make_printout(pairs))


def make_printout(pairs: list[LawPair], before: tuple[str, ...] = ()) -> Printout:
    """Pictures for eyes, as rows and as a document; lines of text may stand before them."""
    from discreet.cli.rows import make_rows

    return Printout(
        rows=lambda: make_rows(_COLUMNS, [row for pair in pairs for row in _list_rows(pair)]),
        document=lambda: {pair.name: _describe(pair) for pair in pairs},
        draw=lambda console: _draw(console, pairs, before),
    )


def _read_scores(text: str) -> list[float]:
    from discreet.errors import UsageError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--scores {text} is not a list of numbers. Write for example --scores 3,3,1,0.") from None


def _list_rows(pair: LawPair) -> list[dict[str, Any]]:
    found = zip(map(str, pair.outputs), pair.p.tolist(), pair.q.tolist(), pair.losses.tolist())
    return [dict(zip(_COLUMNS, (pair.name, *row))) for row in found]


def _describe(pair: LawPair) -> dict[str, Any]:
    return {
        "about": pair.about,
        "outputs": list(pair.outputs),
        "p": pair.p.tolist(),
        "q": pair.q.tolist(),
        "losses": pair.losses.tolist(),
        "trade_off": [{"wrong_alarms": wrong, "missed": missed} for wrong, missed in pair.trade_off],
        "advantage": pair.advantage,
    }


def _draw(console: Any, pairs: list[LawPair], before: tuple[str, ...]) -> None:
    from discreet.pictures import write_text

    plain = not (console.encoding or "").lower().startswith("utf")
    for line in before:
        console.print(line, highlight=False, markup=False)
    if before:
        console.print()
    console.out(write_text(*pairs, width=console.width, plain=plain).rstrip("\n"), highlight=False)
