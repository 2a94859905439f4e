"""The wire page in plain Python, one answer at a time: the slow oracle beside the vectorised client.

Written from docs/local-wire.md alone; it shares no code with the package.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

WORD, HALF = 1 << 64, 1 << 32


class Tape:
    """Random bytes, read front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def word(self) -> int:
        return int.from_bytes(self.take(8), "big")

    def pick(self, m: int) -> int:
        return self.word() * m >> 64


def symbol(value: int, symbols: int) -> bytes:
    width = 1 if symbols <= 1 << 8 else 2 if symbols <= 1 << 16 else 3 if symbols <= 1 << 24 else 4
    return value.to_bytes(width, "big")


def pack(bits: list[int]) -> bytes:
    out = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        if bit:
            out[i >> 3] |= 0x80 >> (i & 7)
    return bytes(out)


def bit_at(row: bytes, i: int) -> int:
    return row[i >> 3] >> (7 - (i & 7)) & 1


def payload(task_json: str, answer: Any, random: bytes) -> bytes:
    task = json.loads(task_json)
    tape, given, domain = Tape(random), task["parameters"], task["domain"]
    number = {k: int(v) for k, v in given.items()}
    d = domain.get("size") or len(domain.get("labels", ()))
    protocol = task["protocol"]
    if "low" in domain:
        v = scale(answer, domain, tape)
    elif "open" in domain:
        v = -1
    else:
        labels = domain.get("labels", list(range(d)))
        v = labels.index(answer) if answer in labels else tape.pick(d)
    return bytes(PROTOCOLS[protocol](number, d, v, answer, tape, domain))


def scale(answer: Any, domain: dict[str, str], tape: Tape) -> int:
    if answer is None or math.isnan(answer):
        return tape.word() >> 32
    low, high = float(domain["low"]), float(domain["high"])
    scaled = math.floor(min(float(HALF), max(0.0, (answer - low) / (high - low) * HALF + 0.5)))
    return int(scaled)


def krr(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    kept, j = tape.word() < g["keep"], tape.pick(d - 1)
    return symbol(v if kept else j if j < v else j + 1, d)


def unary(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    width = (d + 7) // 8
    planes = [tape.take(width) for _ in range(16)]
    bits = []
    for i in range(d):
        u = 0
        for plane in planes:
            u = u * 2 + bit_at(plane, i)
        bits.append(int(u < (g["one"] if i == v else g["other"])))
    return pack(bits)


def hashed(g: dict[str, int], _n: int, v: int, answer: Any, tape: Tape, domain: Any) -> bytes:
    keys = [v]
    if "open" in domain:
        mark = hashlib.sha256((answer or "").encode()).digest()
        keys = [int.from_bytes(mark[:4], "big"), int.from_bytes(mark[4:8], "big")]
    seed = tape.take(8 * (len(keys) + 1))
    words = [int.from_bytes(seed[i : i + 8], "big") for i in range(0, len(seed), 8)]
    h = (sum(a * x for a, x in zip(words, keys)) + words[-1]) % WORD >> 32
    y = h * g["buckets"] >> 32
    kept, j = tape.word() < g["keep"], tape.pick(g["buckets"] - 1)
    return seed + symbol(y if kept else j if j < y else j + 1, g["buckets"])


def hadamard(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    r, even = v + 1, tape.word() < g["keep"]
    j = tape.word() >> (64 - (g["order"].bit_length() - 1))
    if bin(j & r).count("1") % 2 != (0 if even else 1):
        j ^= r & -r
    return symbol(j, g["order"])


def subset(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    bits = [0] * d
    bits[v] = int(tape.word() < g["keep"])
    need, left = g["size"] - bits[v], d - 1
    for i in range(d):
        if i != v:
            bits[i] = int(tape.word() < need * WORD // left)
            need, left = need - bits[i], left - 1
    return pack(bits)


def projective(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    q, t = g["field"], g["dimension"]

    def digits(n: int, places: int) -> list[int]:
        return [n // q ** (places - 1 - i) % q for i in range(places)]

    def point(n: int, places: int) -> list[int]:
        for lead in range(places):
            rest = places - 1 - lead
            start = (q**rest - 1) // (q - 1)
            if start <= n < start + q**rest:
                return [0] * lead + [1] + digits(n - start, rest)
        raise AssertionError

    own = point(v, t)
    lead = own.index(1)
    inside = tape.word() < g["keep"]
    free = point(tape.pick((q ** (t - 1) - 1) // (q - 1)), t - 1) if inside else digits(tape.pick(q ** (t - 1)), t - 1)
    u = [*free[:lead], 0, *free[lead:]]
    u[lead] = ((0 if inside else 1) - sum(a * b for a, b in zip(own, u))) % q
    first = next(x for x in u if x)
    u = [x * pow(first, -1, q) % q for x in u]
    rest = t - 1 - u.index(1)
    r = 0
    for x in u[t - rest :]:
        r = r * q + x
    return symbol((q**rest - 1) // (q - 1) + r, (q**t - 1) // (q - 1))


def sign_bit(g: dict[str, int], x: int, word: int) -> int:
    return int(word < g["low"] + (g["high"] - g["low"]) * x // HALF)


def sign(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    return symbol(sign_bit(g, v, tape.word()), 2)


def window_cell(g: dict[str, int], x: int, tape: Tape) -> int:
    spare = g["cells"] - g["width"]
    s = x * spare // HALF + int((tape.word() >> 32) < x * spare % HALF)
    return beside(s, g["width"], spare, tape.word() < g["inside"], tape)


def beside(s: int, m: int, spare: int, inside: bool, tape: Tape) -> int:
    if inside:
        return s + tape.pick(m)
    j = tape.pick(spare)
    return j if j < s else j + m


def window(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    return symbol(window_cell(g, v, tape), g["cells"])


def hybrid(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, _d: Any) -> bytes:
    if tape.word() < g["piecewise"]:
        return symbol(window_cell(g, v, tape), g["cells"] + 2)
    return symbol(g["cells"] + sign_bit(g, v, tape.word()), g["cells"] + 2)


def wave(g: dict[str, int], d: int, v: int, _a: Any, tape: Tape, domain: Any) -> bytes:
    s = min(g["buckets"] - 1, v * g["buckets"] // HALF) if "low" in domain else v
    y = beside(s, g["width"], g["buckets"] - 1, tape.word() < g["inside"], tape)
    return symbol(y, g["buckets"] + g["width"] - 1)


PROTOCOLS: dict[str, Any] = {
    "krr": krr,
    "unary": unary,
    "hash": hashed,
    "hadamard": hadamard,
    "subset": subset,
    "projective": projective,
    "sign": sign,
    "window": window,
    "hybrid": hybrid,
    "wave": wave,
}
