"""A pair of laws as text: for a terminal, for a reader that speaks, for a page without pictures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from discreet.pictures.law_pair import DrawnOutput, LawPair

_ROWS = 15
"""Outputs that are shown; between them others are left out evenly."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FALSE_ALARMS = (0.01, 0.05, 0.25)


def write_text(*pairs: LawPair, width: int = 80, plain: bool = False) -> str:
    """The pictures one below the other; ``plain`` uses letters of ASCII only."""
    lines = [line for pair in pairs for line in (*_write_pair(pair, max(40, width), plain=plain), "")]
    text = "\n".join(lines)
    return text.translate(_ASCII) if plain else text


_ASCII = str.maketrans({"ε": "eps", "ρ": "rho", "—": "-", "−": "-", "–": "-", "≤": "<=", "∞": "inf"})


def _write_pair(pair: LawPair, width: int, *, plain: bool) -> Iterator[str]:
    yield pair.about
    yield ""
    yield from _write_laws(pair, width, plain=plain)
    yield ""
    yield from _write_losses(pair, width, plain=plain)
    yield ""
    yield from _write_trade_off(pair)


def _write_laws(pair: LawPair, width: int, *, plain: bool) -> Iterator[str]:
    """Each output with its probability on both sides, and the loss."""
    shown = _choose_rows(pair)
    names = [str(pair.outputs[index]) for index in shown]
    left = max(len("output"), *map(len, names))
    room = max(8, (width - left - 2 * 9 - 8) // 2)
    most = float(max(pair.p.max(), pair.q.max()))
    titles = [f"on {name}"[: room + 8] for name in pair.given]
    yield f"{'output':>{left}}  {titles[0]:<{room + 8}} {titles[1]:<{room + 8}} {'loss':>6}".rstrip()
    for index, name in zip(shown, names):
        p, q = float(pair.p[index]), float(pair.q[index])
        bars = [f"{_draw_bar(chance / most, room, plain=plain)} {_percent(chance):>7}" for chance in (p, q)]
        yield f"{name:>{left}}  {bars[0]} {bars[1]} {pair.losses[index]:>+6.2f}".replace("-", "−")


def _write_losses(pair: LawPair, width: int, *, plain: bool) -> Iterator[str]:
    """How often losses of each size occur, on the first side."""
    losses, chances = (np.array(values) for values in zip(*pair.loss_law))
    finite = np.isfinite(losses)
    edges = _choose_edges(losses[finite], chances[finite])
    yield "how often the loss is that large"
    room = max(8, width - 30)
    sums = [(label, float(chances[finite & inside].sum())) for label, inside in _group_losses(losses, edges)]
    if not finite.all():
        sums.append(("without bound", float(chances[~finite].sum())))
    most = max(chance for _, chance in sums)
    for label, chance in sums:
        yield f"{label:>18}  {_draw_bar(chance / most, room, plain=plain)} {_percent(chance):>7}"


def _choose_edges(losses: np.ndarray, chances: np.ndarray) -> list[float]:
    """Where the bars begin and end: every loss by itself where they are few, else nine bars of equal width."""
    if len(losses) <= _ROWS:
        return []
    kept = losses[chances > 1e-6]
    return list(map(float, np.linspace(float(kept.min()), float(kept.max()), 10)))


def _group_losses(losses: np.ndarray, edges: list[float]) -> Iterator[tuple[str, np.ndarray]]:
    if not edges:
        for loss in losses:
            yield f"{loss:+.3f}".replace("-", "−"), losses == loss
        return
    for index, (low, high) in enumerate(pairwise(edges)):
        last = index == len(edges) - 2
        label = f"{low:+.2f} to {high:+.2f}".replace("-", "−")
        yield label, (losses >= (low if index else -np.inf)) & (losses < (np.inf if last else high))


def _write_trade_off(pair: LawPair) -> Iterator[str]:
    """What the best attack can do who must tell the two sides apart."""
    yield f"{'wrong alarms':>18}  found at most"
    for wrong in _FALSE_ALARMS:
        yield f"{_percent(wrong):>18}  {_percent(1 - pair.find_missed(wrong))}"
    yield f"A 50:50 guess is right at most {_percent((1 + pair.advantage) / 2)} of the time."


def _choose_rows(pair: LawPair) -> list[int]:
    """The outputs to show: all where they are few, else evenly over those that have visible mass."""
    count = len(pair.outputs)
    if count <= _ROWS:
        return list(range(count))
    seen = np.flatnonzero(np.maximum(pair.p, pair.q) >= 0.01 * max(pair.p.max(), pair.q.max()))
    step = max(1, -(-len(seen) // (_ROWS - 1)))
    middle = _find_middle(pair.outputs, int(seen[0]), int(seen[-1]))
    return [index for index in range(middle % step, count, step) if seen[0] <= index <= seen[-1]]


def _find_middle(outputs: tuple[DrawnOutput, ...], first: int, last: int) -> int:
    """The output 0 where it is shown, so that the true answer is among the rows."""
    return outputs.index(0) if 0 in outputs else (first + last) // 2


def _draw_bar(share: float, room: int, *, plain: bool) -> str:
    eighths = round(max(0.0, min(1.0, share)) * room * 8)
    if plain:
        return ("#" * round(eighths / 8)).ljust(room)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(room)


def _percent(chance: float) -> str:
    if 0 < chance < 0.0005:
        return "<0.1 %"
    return f"{chance * 100:.1f} %"
