"""`discreet local`: plan, encode, aggregate, estimate, as a person or a script uses them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from discreet.exact import ln
from discreet.local import Task, encode_many
from tests.cli.commands import Run


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """``discreet local`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(run, "local", width=100)


def test_the_whole_way(run: Run) -> None:
    """Plan, encode, aggregate twice, estimate: rubbish is set aside, a file counts once, shares come with bars."""
    code, out, _ = run(
        "plan",
        "colour",
        "--labels",
        "red, green,blue",
        "--epsilon",
        "ln(3)",
        "--people",
        4000,
        "--error",
        "0.02",
        "--out",
        "task.json",
    )
    assert code == 0 and "krr" in out and "chosen" in out and "takes" in out
    assert Task.read(Path("task.json").read_text()).loss <= ln(3)
    colours = ["red"] * 2000 + ["green"] * 1200 + ["blue"] * 800
    Path("answers.txt").write_text("\n".join(colours) + "\n")
    code, out, _ = run("encode", "task.json", "answers.txt", "--out", "reports.jsonl")
    assert code == 0 and out == ""
    lines = Path("reports.jsonl").read_text().splitlines()
    assert len(lines) == 4000 and len({len(line) for line in lines}) == 1
    Path("reports.jsonl").write_text("\n".join([*lines, "rubbish", ""]))
    for new in ("1 of 1", "0 of 1"):
        code, out, _ = run("aggregate", "task.json", "reports.jsonl", "--state", "s")
        assert code == 0 and "4,000 reports" in out and new in out and "1 with a wrong format" in out
    code, out, _ = run("estimate", "s")
    assert code == 0 and "red" in out and "█" in out and "░" in out
    code, out, _ = run("estimate", "s", "--json", "--level", "0.9")
    found = json.loads(out)
    assert found["people"] == 4000 and [row["value"] for row in found["rows"]] == ["red", "green", "blue"]
    assert abs(found["rows"][0]["share"] - 0.5) < 0.1


def test_numbers_and_distributions(run: Run) -> None:
    """Means and square waves; answers that cannot be read are unknown, without a word."""
    for protocol, word in (("hybrid", "mean"), ("wave", "median")):
        assert (
            run(
                "plan",
                "age",
                "--low",
                0,
                "--high",
                100,
                "--epsilon",
                4,
                "--people",
                500,
                "--protocol",
                protocol,
                "--out",
                "t.json",
            )[0]
            == 0
        )
        Path("a.txt").write_text("\n".join(["40"] * 500 + ["no answer"]))
        code, out, err = run("encode", "t.json", "a.txt", "--out", "r.jsonl")
        assert code == 0 and err == ""
        assert run("aggregate", "t.json", "r.jsonl", "--state", f"{protocol}.state")[0] == 0
        code, out, _ = run("estimate", f"{protocol}.state")
        assert code == 0 and word in out
        code, out, _ = run("estimate", f"{protocol}.state", "--json")
        assert abs(json.loads(out)["mean"] - 40) < 8


def test_open_domains_and_parquet(run: Run) -> None:
    """Hashed texts are counted for the candidates of a file; Arrow reports are read from Parquet."""
    assert run("plan", "word", "--open", "--epsilon", 3, "--people", 500, "--out", "t.json", "--json")[0] == 0
    task = Task.read(Path("t.json").read_text())
    pq.write_table(encode_many(task, ["moon"] * 400 + ["sun"] * 100).arrow(), "r.parquet")
    Path("c.txt").write_text("moon\nsun\nstar\nmoon\n")
    code, out, _ = run("aggregate", "t.json", "r.parquet", "--state", "s", "--candidates", "c.txt", "--json")
    assert code == 0 and json.loads(out)["people"] == 500
    code, out, _ = run("estimate", "s", "--json")
    assert code == 0 and json.loads(out)["rows"][0]["value"] == "moon"


def test_memory_on_the_command_line(run: Run) -> None:
    """A task that remembers needs the memory file; the same answer gives the same line; a new one is refused."""
    assert run("plan", "c", "--size", 9, "--epsilon", 1, "--people", 10, "--remember", 1, "--out", "t.json")[0] == 0
    Path("a.txt").write_text("4\n4\n")
    assert run("encode", "t.json", "a.txt")[0] == 2
    code, out, _ = run("encode", "t.json", "a.txt", "--memory", "m.json")
    assert code == 0 and len(set(out.splitlines())) == 1
    assert run("encode", "t.json", "a.txt", "--memory", "m.json")[1] == out
    Path("a.txt").write_text("5\n")
    assert run("encode", "t.json", "a.txt", "--memory", "m.json")[0] == 3


def test_epochs_on_the_command_line(run: Run) -> None:
    """The first answer of an epoch is pinned; the next epoch has reports of its own; after the last there is none."""
    base = ("plan", "c", "--size", 9, "--epsilon", 1, "--people", 10, "--epochs", 2)
    for epoch in (0, 1):
        assert run(*base, "--epoch", epoch, "--out", f"{epoch}.json")[0] == 0
    assert run(*base, "--epoch", 2)[0] == 2 and run(*base, "--remember", 2)[0] == 2
    Path("a.txt").write_text("4\n5\n6\n")
    outs = [run("encode", f"{epoch}.json", "a.txt", "--memory", "m.json")[1].splitlines() for epoch in (0, 1)]
    assert [len(out) for out in outs] == [3, 3] and len({*outs[0]}) == len({*outs[1]}) == 1
    assert outs[0] != outs[1]


def test_wrong_words_are_refused(run: Run) -> None:
    """Every mistake has exit code 2 and names its fix; a state of another task is not touched."""
    base = ("--epsilon", 1, "--people", 100)
    for wrong in (
        ("plan", "x", "--size", 5, "--epsilon", "much", "--people", 5),
        ("plan", "x", "--size", 5, "--epsilon", "1/0", "--people", 5),
        ("plan", "x", *base),
        ("plan", "x", "--size", 5, "--open", *base),
        ("plan", "x", "--size", 5, "--protocol", "none", *base),
        ("plan", "x", "--size", 5, "--error", "small", *base),
        ("plan", "x", "--low", 5, "--high", 1, *base),
        ("encode", "missing.json"),
        ("estimate", "missing.state"),
    ):
        code, _, err = run(*wrong)
        assert code == 2 and err, wrong
    for epoch in (0, 1):
        run("plan", "x", "--size", 5, *base, "--epoch", epoch, "--out", f"{epoch}.json")
    Path("a").write_text("1\n")
    run("encode", "0.json", "a", "--out", "r")
    assert run("encode", "0.json", "nowhere")[0] == 2
    assert run("aggregate", "0.json", "nowhere", "--state", "s")[0] == 2
    assert run("aggregate", "0.json", "r", "--state", "s")[0] == 0
    code, _, err = run("aggregate", "1.json", "r", "--state", "s")
    assert code == 2 and "belongs to" in err
    assert run("aggregate", "0.json", "r", "--state", "s2", "--candidates", "nowhere")[0] == 2
