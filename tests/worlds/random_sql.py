"""Random questions about several tables: joins, subqueries, features, windows, unions, memberships, within each other.

All of them are meant to be accepted, and to mean to plain DuckDB what they mean to us.
"""

# ruff: noqa: S311  # statements need seeds, not secrets, and nobody runs them on real tables
from __future__ import annotations

import random
from dataclasses import dataclass, field

# Numbers and texts of each table; the unit is the first name.
TABLES = {
    "visits": ("patient_id", ("age", "visit_id"), ("ward",)),
    "patients": ("patient_id", ("born",), ("ward", "town", "sex")),
    "labs": ("patient_id", ("visit_id",), ("test",)),
    "workers": ("person", (), ("firm", "town")),
}
PUBLIC = {"wards": (("floor", "beds"), ("ward", "city")), "regions": ((), ("town", "region"))}


@dataclass(frozen=True)
class Part:
    """Something of FROM: its text, and its columns as they are written around it."""

    text: str
    units: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    more: tuple[str, ...] = ()  # conditions that belong into WHERE


@dataclass
class Writer:
    """Writes statements. Every name it gives is used once."""

    rng: random.Random
    count: int = field(default=0)

    def question(self, depth: int) -> str:
        """A whole question that counts and sums."""
        part = self.source(depth)
        where = self.where(part)
        sums = "".join(f", SUM({number}) AS s{i}, COUNT({number}) AS k{i}" for i, number in enumerate(part.numbers[:2]))
        return f"SELECT COUNT(*) AS n{sums} FROM {part.text}{where}"

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    # FROM

    def source(self, depth: int) -> Part:
        if depth <= 0:
            return self.table()
        match self.rng.randrange(4):
            case 0:
                return self.table()
            case 1:
                return self.subquery(depth - 1)
            case 2:
                return self.join_private(self.source(depth - 1), self.source(depth - 2))
            case _:
                return self.join_public(self.source(depth - 1))

    def table(self) -> Part:
        name = self.rng.choice(list(TABLES))
        unit, numbers, texts = TABLES[name]
        alias = self.name("t")
        word = self.rng.choice((f"{name} AS {alias}", f"{name} {alias}"))
        return Part(word, (f"{alias}.{unit}",), _all(alias, numbers), _all(alias, texts))

    def public(self) -> Part:
        name = self.rng.choice(list(PUBLIC))
        numbers, texts = PUBLIC[name]
        alias = self.name("w")
        return Part(f"{name} {alias}", (), _all(alias, numbers), _all(alias, texts))

    def join_private(self, left: Part, right: Part) -> Part:
        tie = f"{self.rng.choice(left.units)} = {self.rng.choice(right.units)}"
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN", ",", "INNER JOIN"))
        if kind == ",":
            more = (tie, *left.more, *right.more)
            text = f"{left.text} CROSS JOIN ({right.text})"
            return Part(text, (*left.units, *right.units), left.numbers + right.numbers, left.texts + right.texts, more)
        on = [tie]
        if self.rng.random() < 0.3 and left.texts and right.texts:
            on.append(f"{self.rng.choice(left.texts)} = {self.rng.choice(right.texts)}")
        if right.more or left.more:
            kind = "JOIN"
            on += [*left.more, *right.more]
        text = f"{left.text} {kind} ({right.text}) ON {' AND '.join(on)}"
        if kind in {"SEMI JOIN", "ANTI JOIN"}:
            return Part(text, left.units, left.numbers, left.texts)
        units = {"LEFT JOIN": left.units, "RIGHT JOIN": right.units}.get(kind, (*left.units, *right.units))
        return Part(text, units, left.numbers + right.numbers, left.texts + right.texts)

    def join_public(self, left: Part) -> Part:
        right = self.public()
        tie = f"{self.rng.choice(left.texts or ('NULL::VARCHAR',))} = {self.rng.choice(right.texts)}"
        if not left.texts:
            return left
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "flip"))
        if left.more and kind != "flip":
            kind = "JOIN"
        if kind == "flip":
            text = f"{right.text} JOIN ({left.text}) ON {tie}"
        else:
            text = f"{left.text} {kind} {right.text} ON {tie}"
        if kind in {"SEMI JOIN", "ANTI JOIN"}:
            return Part(text, left.units, left.numbers, left.texts)
        return Part(text, left.units, left.numbers + right.numbers, left.texts + right.texts, left.more)

    # SELECT inside

    def subquery(self, depth: int) -> Part:
        alias = self.name("q")
        text, numbers, texts, unit = self.select(depth)
        return Part(f"({text}) AS {alias}", (f"{alias}.{unit}",), _all(alias, numbers), _all(alias, texts))

    def select(self, depth: int) -> tuple[str, tuple[str, ...], tuple[str, ...], str]:
        """A SELECT, the names of its numbers and texts, and that of its unit."""
        part = self.source(depth)
        where = self.where(part)
        unit, number, word = self.name("u"), self.name("a"), self.name("b")
        value = self.number(part)
        text = self.rng.choice(part.texts) if part.texts else "'z'"
        of_unit = self.rng.choice(part.units)
        match self.rng.randrange(6):
            case 0:
                picked = f"{of_unit} AS {unit}, {self.feature(part)} AS {number}, MAX({text}) AS {word}"
                having = self.rng.choice(("", f" HAVING COUNT(*) > {self.rng.randrange(3)}"))
                return f"SELECT {picked} FROM {part.text}{where} GROUP BY {of_unit}{having}", (number,), (word,), unit
            case 1:
                picked = f"{of_unit} AS {unit}, {text} AS {word}, {self.feature(part)} AS {number}"
                return f"SELECT {picked} FROM {part.text}{where} GROUP BY {of_unit}, {word}", (number,), (word,), unit
            case 2:
                distinct = f"SELECT DISTINCT {of_unit} AS {unit}, {value} AS {number}, {text} AS {word}"
                return f"{distinct} FROM {part.text}{where}", (number,), (word,), unit
            case 3:
                over = f"OVER (PARTITION BY {of_unit} ORDER BY {value})"
                function = self.rng.choice((f"SUM({value})", "COUNT(*)", f"MIN({value})", "RANK()", "DENSE_RANK()"))
                picked = f"{of_unit} AS {unit}, {function} {over} AS {number}, {text} AS {word}"
                return f"SELECT {picked} FROM {part.text}{where}", (number,), (word,), unit
            case 4 if depth > 0:
                other, numbers, texts, their = self.select(depth - 1)
                first = f"SELECT {of_unit} AS {unit}, {value} AS {number}, {text} AS {word} FROM {part.text}{where}"
                second = f"SELECT {their}, {numbers[0]}, {texts[0]} FROM ({other})"
                return f"{first} UNION {self.rng.choice(('ALL ', ''))}{second}", (number,), (word,), unit
            case _:
                picked = f"{text} AS {word}, {of_unit} AS {unit}, {value} AS {number}"
                return f"SELECT {picked} FROM {part.text}{where}", (number,), (word,), unit

    def feature(self, part: Part) -> str:
        value = self.number(part)
        word = self.rng.choice(("COUNT(*)", "SUM", "MIN", "MAX", "COUNT", "COUNT(DISTINCT"))
        if word == "COUNT(*)":
            return f"COUNT(*) FILTER (WHERE {value} > 30)"
        return f"{word} {value})" if word.endswith("DISTINCT") else f"{word}({value}) + 1"

    def number(self, part: Part) -> str:
        if not part.numbers:
            return "3"
        one = self.rng.choice(part.numbers)
        return self.rng.choice((one, f"{one} + 1", f"COALESCE({one}, 7)", f"{one} * {self.rng.choice(part.numbers)}"))

    # WHERE

    def where(self, part: Part) -> str:
        found = list(part.more)
        if part.numbers and self.rng.random() < 0.4:
            found.append(
                f"{self.rng.choice(part.numbers)} {self.rng.choice(('>', '<=', '<>'))} {self.rng.randrange(70)}"
            )
        if part.texts and self.rng.random() < 0.3:
            one, not_ = self.rng.choice(part.texts), self.rng.choice(("", "NOT "))
            member = (
                f"{one} IN (SELECT ward FROM wards WHERE floor = 2)"
                if not not_
                else f"{one} NOT IN (SELECT ward FROM wards WHERE floor = 2) AND {one} IS NOT NULL"
            )
            exists = f"{not_}EXISTS (SELECT 1 FROM wards x WHERE x.city = {one} AND x.beds > 5)"
            found.append(self.rng.choice((member, exists)))
        if self.rng.random() < 0.3:
            unit, not_ = self.rng.choice(part.units), self.rng.choice(("", "NOT "))
            inner = self.rng.choice(("SELECT person FROM workers", "SELECT patient_id FROM patients WHERE born > 1950"))
            found.append(f"{unit} {not_}IN ({inner})")
        return f" WHERE {' AND '.join(found)}" if found else ""


def _all(alias: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{alias}.{name}" for name in names)


def a_question(seed: int) -> str:
    """A random question."""
    rng = random.Random(seed)
    return Writer(rng).question(rng.randrange(4))
