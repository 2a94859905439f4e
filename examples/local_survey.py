"""A survey whose answers are private before they leave the person: plan, encode, collect, estimate.

Run it with ``python examples/local_survey.py``.
"""

from __future__ import annotations

from discreet.local import Aggregator, Frequencies, Person, choose, encode_many, estimate

ANSWERS = ["never"] * 4000 + ["sometimes"] * 3000 + ["often"] * 1000


def main() -> None:
    """Ask eight thousand people once, and one person every day."""
    choice = choose(["never", "sometimes", "often"], epsilon=1, n=len(ANSWERS))
    task = choice.task("how often")  # the same for everybody; it holds no secret
    print("protocol:", choice.best.name)

    collected = Aggregator(task)  # the server sees reports, and no answers
    collected.add(encode_many(task, ANSWERS), batch="first day")
    shares = estimate(collected)
    assert isinstance(shares, Frequencies)
    for name, share, low, high in zip(shares.names, shares.values, shares.low, shares.high):
        print(f"{name:>9}: {share:.3f}, with 95 % confidence between {low:.3f} and {high:.3f}")

    daily = choose(10, epsilon=1, n=len(ANSWERS)).task("mood", values=2)
    person = Person(budget=3)  # remembers its reports, so that repeating an answer reveals nothing more
    reports = {person.report(daily, 7) for _ in range(30)}
    print(f"{len(reports)} report in 30 days, which cost ε {float(person.spent):g}")


if __name__ == "__main__":
    main()
