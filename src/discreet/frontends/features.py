"""GROUP BY inside one unit: features of a person, from all of their rows (``PerUnit``)."""

from __future__ import annotations

from dataclasses import replace

from discreet.bounding.stability import Owner
from discreet.frontends import names
from discreet.frontends.calls import conditions, truth
from discreet.frontends.computes import compute, word
from discreet.frontends.outputs import Derived, expanded, title
from discreet.frontends.positions import Place, refusal
from discreet.frontends.rows import is_aggregate, misplaced, row
from discreet.frontends.scope import Maker, Scope, Visible, check_owner, look
from discreet.frontends.terms import Draft, Item, Measure, Name, Ordinal, Term, Trait, parts_of
from discreet.plan.expressions import Call, Column, Expression, columns
from discreet.plan.relations import Compute, PerUnit


def grouped(draft: Draft, base: Scope, maker: Maker) -> Derived:
    """The outputs of a SELECT with GROUP BY, over one row for each unit and value of the keys."""
    return _Grouping(draft, base, maker).derived()


class _Grouping:
    """The state of one GROUP BY: keys first, then features as they are met."""

    def __init__(self, draft: Draft, base: Scope, maker: Maker) -> None:
        self.draft = draft
        self.base = base
        self.maker = maker
        self.items = list(expanded(draft, base))
        self.relation = maker.name("features")
        self.keys: dict[Expression, Column] = {}
        self.features: dict[Compute, Column] = {}
        self.taken: set[str] = set()
        self.named: dict[str, Expression] = {}

    def derived(self) -> Derived:
        self._read_keys()
        outputs = []
        for item in self.items:
            expression = self._above(item.term, "SELECT", item.alias)
            name = item.alias or self._plain(item, expression)
            outputs.append(Visible("", name, expression))
            self.named.setdefault(name.lower(), expression)
        having = [c for term in self.draft.having for c in self._having(term)]
        relation = PerUnit(
            self.base.relation,
            self.relation,
            tuple((column.name, key) for key, column in self.keys.items()),
            tuple((column.name, feature) for feature, column in self.features.items()),
        )
        known = look(relation, self.maker.catalog, self._place())
        scope = replace(self.base, relation=relation, known=known, columns=tuple(outputs)).where(*having)
        return Derived(scope, tuple(outputs), self._place())

    def _place(self) -> Place | None:
        first = self.draft.group[0] if self.draft.group else self.items[0].term if self.items else None
        return first.place if first is not None else None

    def _plain(self, item: Item, expression: Expression) -> str:
        if isinstance(expression, Column) and expression.table == self.relation:
            return item.term.name if isinstance(item.term, Name) else expression.name
        return title(item, expression)

    # Keys

    def _read_keys(self) -> None:
        if self.draft.sets is not None:
            rule = "ROLLUP, CUBE and GROUPING SETS belong to the outermost SELECT."
            raise refusal(self._place(), rule, "Group by plain keys here.")
        if self.draft.group is None:
            terms = [item.term for item in self.items if not any(map(is_aggregate, parts_of(item.term)))]
        else:
            terms = [self._key_term(term) for term in self.draft.group]
        for term in terms:
            key = row(term, self._find, "GROUP BY")
            if not columns(key):
                rule = "A key must read a column; this is the same for all rows."
                raise refusal(term.place, rule, "Leave it out.")
            if key not in self.keys:
                self.keys[key] = Column(self.relation, self._free(self._key_name(key, term)), key.type)
        self._check_unit()

    def _check_unit(self) -> None:
        known = self.base.known
        if known.owner is Owner.NOBODY:
            if not self.keys:
                rule = "An aggregate of a public table inside a question needs GROUP BY."
                raise refusal(self._place(), rule, "Write the number itself into the question.")
            return
        if any(key in known.units for key in self.keys):
            return
        check_owner(known, "GROUP BY", self._place())
        unit = self.base.unit_words() or self.maker.catalog.unit.column
        rule = "GROUP BY inside a question would put rows of different units into one group."
        add = f"Add {unit} to the inner GROUP BY" if self.draft.group else f"Add GROUP BY {unit}"
        raise refusal(self._place(), rule, f"{add}, or ask it as a question of its own and use its answer as a table.")

    def _key_term(self, term: Term) -> Term:
        """What a key stands for: ordinals and the names of outputs are replaced by what they name."""
        if isinstance(term, Ordinal):
            if not 1 <= term.position <= len(self.items):
                rule = f"GROUP BY {term.position}: there are only {len(self.items)} outputs."
                raise refusal(term.place, rule, "Name a column.")
            return self.items[term.position - 1].term
        if isinstance(term, Name) and term.qualifier is None and not self.base.matches(term):
            for item in self.items:
                if item.alias is not None and item.alias.lower() == term.name.lower():
                    return item.term
        return term

    def _key_name(self, key: Expression, term: Term) -> str:
        for item in self.items:
            if item.alias is not None and item.term == term:
                return item.alias
        return names.Titles((), (), {}).of(key) or "key"

    def _find(self, name: Name) -> Expression:
        return self.base.find(name).expression

    # Features

    def _above(self, term: Term, clause: str, alias: str | None = None) -> Expression:
        """A term over keys and features."""

        def special(inner: Term) -> Expression:
            if not isinstance(inner, Measure | Trait) or not is_aggregate(inner):
                raise misplaced(inner, clause)
            return self._feature(inner, alias if inner is term else None)

        return self._over_keys(row(term, self._named, clause, special), term, clause)

    def _named(self, name: Name) -> Expression:
        found = self.base.matches(name)
        if not found and name.qualifier is None and name.name.lower() in self.named:
            return self.named[name.name.lower()]
        return self._find(name)

    def _feature(self, term: Measure | Trait, alias: str | None) -> Column:
        wanted = compute(term, self._find)
        if wanted not in self.features:
            name = alias or names.joined(word(wanted), self._title(wanted))
            self.features[wanted] = Column(self.relation, self._free(name), wanted.type)
        return self.features[wanted]

    def _title(self, wanted: Compute) -> str:
        return "" if wanted.argument is None else names.Titles((), (), {}).of(wanted.argument)

    def _over_keys(self, expression: Expression, term: Term, clause: str) -> Expression:
        """The expression with every part that equals a key replaced by that key."""
        if expression in self.keys:
            return self.keys[expression]
        match expression:
            case Column() if expression.table != self.relation:
                rule = f"{expression.name!r} in {clause} is neither in GROUP BY nor inside an aggregate."
                fix = f"Add {expression.name} to GROUP BY, or use MIN, MAX, SUM, AVG or COUNT of it."
                raise refusal(term.place, rule, fix)
            case Call():
                arguments = tuple(self._over_keys(a, term, clause) for a in expression.arguments)
                return Call(expression.function, arguments, expression.type)
            case _:
                return expression

    def _having(self, term: Term) -> tuple[Expression, ...]:
        return conditions(truth(self._above(term, "HAVING"), "HAVING", term.place))

    def _free(self, name: str) -> str:
        free, number = name, 1
        while free.lower() in self.taken:
            number += 1
            free = f"{name} {number}"
        self.taken.add(free.lower())
        return free
