"""The published vectors of the JavaScript client: ``python -m tests.local.javascript_vectors`` writes the file anew."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet.entropy import Words
from discreet.errors import BudgetExceeded
from discreet.exact import ln
from discreet.local.client import bytes_needed, encode
from discreet.local.domain import Domain
from discreet.local.person import Person
from discreet.local.task import Task

FILE = Path(__file__).resolve().parents[2] / "clients" / "javascript" / "vectors.json"
WORDS = ["red", "grün", "\U0001f9ea blue", 'a "quote" and a \\ backslash']
ODD: list[object] = [None, True, "7", -1, 10**15, "", [], {}]


class Fixed:
    """A source that hands out given bytes."""

    def __init__(self, random: bytes) -> None:
        self._random = random

    def words(self, count: int) -> Words:
        return np.frombuffer(self._random[: 8 * count], dtype=np.uint64).copy()

    def word(self) -> int:
        raise NotImplementedError

    def bits(self, count: int) -> int:
        raise NotImplementedError


def bytes_of(label: str, count: int) -> bytes:
    return hashlib.shake_256(f"discreet local vectors {label}".encode()).digest(count)


def tasks() -> Iterator[tuple[Task, list[object]]]:
    """Every protocol, small and large, with the answers to try."""

    def made(protocol: str, domain: object, epsilon: object) -> Task:
        name = f"{protocol} {len(seen)}"
        seen.append(name)
        return Task.for_epsilon(name, domain, epsilon=epsilon, protocol=protocol, epoch=len(seen))

    seen: list[str] = []
    indices: list[object] = [0, 1, 2, *ODD]
    for size, epsilon in ((2, ln(3)), (3, 1), (7, 0.5), (256, 4), (257, 1), (1000, 1), (70_000, 3), (2**32 - 1, 6)):
        answers = [*indices, size - 1, size, size // 2]
        protocols = ["krr", "hadamard", "hash"]
        protocols += ["unary", "sue", "subset"] if size <= 1000 else []
        protocols += ["projective"] if size <= 2**20 else []
        for protocol in protocols:
            yield made(protocol, size, epsilon), answers
    for protocol in ("krr", "subset", "projective", "hash", "wave"):
        yield made(protocol, WORDS, 2), [*WORDS, "Red", "gru\u0308n", *ODD]
    yield made("projective", 5000, 4), [*indices, 4999]
    yield made("wave", 50, 1), [*indices, 49]
    texts: list[object] = ["a", "word", "grün", "\U0001f9ea", "half \ud83e of a pair", "\ude00", "x" * 200, *ODD]
    yield made("hash", Domain(open=True), 1), texts
    yield made("hash", Domain(open=True), 8), texts
    numbers: list[object] = [
        0,
        1,
        0.1,
        59.99999,
        60,
        119.5,
        120,
        -5,
        1e300,
        -1e300,
        1e-320,
        2**60,
        None,
        True,
        "60",
        [],
    ]
    for protocol in ("sign", "window", "hybrid", "wave"):
        for low, high, epsilon in ((0, 120, 1), (-1.5, 1.5, 0.3), ("1e-3", "1E+3", 4)):
            domain = Domain(low=low, high=high)
            yield made(protocol, domain, epsilon), numbers


def cases(task: Task, answers: list[object]) -> Iterator[dict[str, Any]]:
    """Ordinary bytes for every answer; for the first ones the two ends too, and words on both sides of thresholds."""
    for place, answer in enumerate(answers):
        needed = bytes_needed(task, answer)
        if needed > 512 and 3 < place < len(answers) - 3:
            continue  # a thousand values need kilobytes for each report: some of the answers will do
        randoms = [bytes_of(f"{task.name} {place} {draw}", needed) for draw in range(1 if needed > 512 else 2)]
        if place < 2 and needed <= 512:
            edges = [int(value) for value in task.protocol.parameters.values()]
            around = [edge + by for edge in edges for by in (-1, 0) if edge + by < 2**64]
            randoms += [bytes(needed), b"\xff" * needed]
            randoms += [(edge.to_bytes(8, "big") * (needed // 8 + 1))[:needed] for edge in around]
        for number, random in enumerate(randoms):
            report = encode(task, answer, random=random)
            case = {"answer": answer, "random": random.hex(), "report": report.hex()}
            yield case | ({"line": line_of(task, report)} if place + number == 0 else {})


def line_of(task: Task, report: bytes) -> str:
    from discreet.local.reports import read_wire

    (line,) = read_wire(task, [report]).lines()
    return line


def memories() -> Iterator[dict[str, Any]]:
    """One person each, over time: repeated answers, new ones, and the refusal when the promise is used up."""
    texts: list[object] = ["alpha", "alpha", "grün", "alpha", None, "\U0001f9ea", "half \ud83e", "grün"]
    plans: list[tuple[str, object, list[object]]] = [
        ("krr", 5, [1, 1, 4, 1, None, 9, 0, 2, 4]),
        ("unary", WORDS, ["red", "red", "nobody", "grün", "also nobody", WORDS[2], WORDS[3]]),
        ("hybrid", (0, 120), [3, 3, 3.0000000000001, None, 200, 120, 60]),
        ("hash", Domain(open=True), texts),
        ("rappor", Domain(open=True), texts),
    ]
    for number, (protocol, domain, answers) in enumerate(plans):
        task = Task.for_epsilon(f"memory {protocol}", domain, epsilon=2, protocol=protocol, values=3)
        secret = bytes_of(f"secret {number}", 32)
        person, steps = Person(secret=secret), []
        for place, answer in enumerate(answers):
            random = bytes_of(f"memory {number} {place}", task.protocol.random_bytes)
            try:
                report: str | None = person.report(task, answer, source=Fixed(random)).hex()
            except BudgetExceeded:
                report = None
            steps.append({"answer": answer, "random": random.hex(), "report": report})
        yield {"task": task.json, "secret": secret.hex(), "steps": steps}


def epochs() -> Iterator[dict[str, Any]]:
    """One person each, over public epochs: the first answer of an epoch is pinned, each epoch has noise of its own."""
    plans: list[tuple[str, object, list[object]]] = [
        ("krr", 5, [1, 4, 1, 1, None, 9, 0, 2]),
        ("subset", WORDS, ["red", "grün", "red", "nobody", WORDS[2], "red", WORDS[3], "red"]),
        ("hybrid", (0, 120), [3, 60, 3, None, 200, 3, 120, 60]),
        ("hash", Domain(open=True), ["alpha", "grün", "alpha", None, "\U0001f9ea", "half \ud83e", "alpha", ""]),
        ("rappor", Domain(open=True), ["alpha", "grün", "alpha", None, "\U0001f9ea", "half \ud83e", "alpha", ""]),
    ]
    for number, (protocol, domain, answers) in enumerate(plans):
        first = Task.for_epsilon(f"epochs {protocol}", domain, epsilon=2, protocol=protocol, epochs=4)
        secret = bytes_of(f"epochs secret {number}", 32)
        person, steps = Person(secret=secret), []
        for place, (answer, epoch) in enumerate(zip(answers, [0, 0, 1, 1, 3, 0, 2, 3])):
            random = bytes_of(f"epochs {number} {place}", first.protocol.random_bytes)
            report = person.report(first.in_epoch(epoch), answer, source=Fixed(random)).hex()
            steps.append({"epoch": epoch, "answer": answer, "random": random.hex(), "report": report})
        yield {"tasks": [first.in_epoch(epoch).json for epoch in range(4)], "secret": secret.hex(), "steps": steps}


# Ranges that some languages read and others do not.
UNPLAIN = (("0", "+1"), ("0", "1."), ("0", ".5"), ("0", " 1"), ("0", "1e1000"), ("0", "1_0"), ("0", "0x1"), ("0", "١"))


def refused() -> Iterator[dict[str, str]]:
    """Tasks that no client may answer."""
    good = json.loads(Task.for_epsilon("t", 4, epsilon=1, protocol="krr").json)
    keep = int(good["parameters"]["keep"])
    changes: dict[str, dict[str, Any]] = {
        "keeps the answer more often than its epsilon allows": {"parameters": {"keep": str(keep + 1)}},
        "always keeps the answer": {"parameters": {"keep": str(2**64)}},
        "a threshold of zero": {"parameters": {"keep": "0"}},
        "no parameters": {"parameters": {}},
        "a parameter too many": {"parameters": {"keep": str(keep), "more": 1}},
        "parameters that are no object": {"parameters": [str(keep)]},
        "an unknown protocol": {"protocol": "plain"},
        "a protocol with an inherited name": {"protocol": "constructor"},
        "a protocol that is no text": {"protocol": ["krr"]},
        "another format": {"discreet": "local/2"},
        "no name": {"name": ""},
        "a name with a line break": {"name": "a\nb"},
        "a name of 201 characters": {"name": "x" * 201},
        "an epoch below zero": {"epoch": -1},
        "an epoch that is no whole number": {"epoch": 0.5},
        "an epoch written as a real": {"epoch": 0.0},
        "a size written as a real": {"domain": {"size": 4.0}},
        "epochs written as a real": {"longitudinal": {"epochs": 2.0}},
        "an epsilon of zero": {"epsilon": "0"},
        "an epsilon that is a number": {"epsilon": 1},
        "an epsilon not in lowest terms": {"epsilon": "2/2"},
        "an epsilon above 32": {"epsilon": "33"},
        "a smaller epsilon than its parameters": {"epsilon": "ln(2)"},
        "a domain of one value": {"domain": {"size": 1}},
        "a domain in two forms": {"domain": {"size": 4, "open": True}},
        "labels that are alike": {"domain": {"labels": ["a", "a", "b", "c"]}},
        "an open domain": {"domain": {"open": True}},
        "a range": {"domain": {"low": "0", "high": "1"}},
        "a memory without a number": {"longitudinal": {}},
        "a memory of nothing": {"longitudinal": {"values": 0}},
        "no epochs": {"longitudinal": {"epochs": 0}},
        "an epoch and a half": {"longitudinal": {"epochs": 1.5}},
        "values and epochs": {"longitudinal": {"epochs": 2, "values": 2}},
        "an epoch after the last": {"epoch": 2, "longitudinal": {"epochs": 2}},
        "a key too many": {"more": 1},
    }
    for what, change in changes.items():
        yield {"what": what, "task": json.dumps(good | change)}
    # json.dumps writes 4e0 as 4.0, so this one is written by hand.
    yield {"what": "a size of 4E0", "task": json.dumps(good).replace('"size": 4', '"size": 4E0')}
    yield {"what": "not JSON", "task": "{"}
    yield {"what": "a list", "task": "[]"}
    # What unevenly drawn numbers add to the loss counts, too: keeping a little more is already too much.
    for protocol, size, share in (("krr", 3 * 2**29 + 2, 36), ("hash", 7, 63), ("subset", 4096, 40)):
        task = json.loads(Task.for_epsilon("t", size, epsilon=1, protocol=protocol).json)
        keep = int(task["parameters"]["keep"])
        task["parameters"]["keep"] = str(keep + max(1, keep >> share))
        yield {"what": f"{protocol} that keeps a little too much", "task": json.dumps(task)}
    for low, high in (("1", "1"), ("2", "1"), ("0", "x"), ("", "1"), ("-1e308", "1e308"), ("0", "Infinity"), *UNPLAIN):
        task = json.loads(Task.for_epsilon("t", (0, 1), epsilon=1, protocol="sign").json)
        task["domain"] = {"low": low, "high": high}
        yield {"what": f"a range from {low!r} to {high!r}", "task": json.dumps(task)}
    for protocol, domain, change in (
        ("unary", 4, {"other": 9}),
        ("hadamard", 4, {"order": 4}),
        ("hadamard", 4, {"order": 12}),
        ("subset", 4, {"size": 4}),
        ("projective", 9, {"field": 4}),
        ("projective", 9, {"dimension": 2, "field": 2}),
        ("hash", 9, {"buckets": 1}),
        ("sign", (0, 1), {"low": "1"}),
        ("window", (0, 1), {"width": 4096}),
        ("wave", 9, {"buckets": 8}),
    ):
        task = json.loads(Task.for_epsilon("t", domain, epsilon=1, protocol=protocol).json)
        task["parameters"] |= change
        yield {"what": f"{protocol} with {', '.join(change)}", "task": json.dumps(task)}


def vectors() -> dict[str, Any]:
    fresh = Task.for_epsilon("fresh", 4, epsilon=2, protocol="projective")
    shared = Task.for_epsilon("shared", 100, epsilon=1, protocol="krr", values=3)
    return {
        "format": "discreet local vectors/1",
        "reports": [
            {
                "task": task.json,
                "digest": task.digest.hex(),
                "report_bytes": len(encode(task, None)),
                "cases": list(cases(task, answers)),
            }
            for task, answers in tasks()
        ],
        "memories": list(memories()),
        "epochs": list(epochs()),
        "refused": list(refused()),
        # For a collector: what a client sends for these answers with its own randomness.
        "fresh": {"task": fresh.json, "answers": [0] * 1500 + [1] * 900 + [2] * 600},
        # For a memory that several pages share.
        "shared": {"task": shared.json},
    }


def text() -> str:
    """The whole file: one task a line, ASCII only, so that half a surrogate pair survives."""
    parts = []
    for name, content in vectors().items():
        rows = ",\n ".join(map(json.dumps, content)) if isinstance(content, list) else ""
        parts.append(f"{json.dumps(name)}: " + (f"[\n {rows}\n]" if rows else json.dumps(content)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="ascii")
