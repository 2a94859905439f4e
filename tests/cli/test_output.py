"""The one way to print: every command that prints rows, in every format, with equal rows; and every refusal."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner, Result

import discreet.cli
from discreet import attacks, demo
from discreet.audit import installation
from discreet.audit.findings import Finding, Verdict, Witness
from discreet.cli import main
from discreet.cli.late_commands import LateCommand
from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.options import OfferOptions
from discreet.cli.output import Format, OutputOptions, wants_json
from discreet.errors import DiscreetError, UsageError
from discreet.local.protocol_choice import Choice
from discreet.opening import open_codebook
from discreet.row_formats import to_csv, to_json
from discreet.service.roles import Role
from discreet.service.tokens import TokenStore
from tests.cli.commands import on_terminal

COUNT = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward"
MEDIAN = "SELECT MEDIAN(age) AS m, AVG(age) AS a, COUNT(*) AS n FROM visits"
AUTO = "SELECT SUM(cost) AS s, COUNT(*) AS n FROM visits"
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A command line that prints rows, and where they are in its JSON document."""

    command: str
    arguments: tuple[str, ...]
    rows_of: Callable[[Any], list[Row]]

    def __str__(self) -> str:
        return " ".join((self.command, *self.arguments))


def errors_of(document: Row) -> list[Row]:
    """The expected errors of a preview's document, one row for each size of a group."""
    rows = []
    for column in document["columns"]:
        row = {"column": column["name"], "measured_by": column["what"], "group_size": None, "error": column["error"]}
        row |= {name: column.get(name) for name in ("error_in_rank", "usual_error_in_rank", "ends_in_rank")}
        sizes = column["error_by_size"].items()
        rows += [row | {"group_size": int(size), "error": error} for size, error in sizes] or [row]
    return rows


def number(parts: list[list[Row]]) -> list[Row]:
    """Rows of several questions, numbered from one; what a question lacks is None."""
    names = {name: None for rows in parts for row in rows for name in row}
    return [{"question": place} | names | row for place, rows in enumerate(parts, 1) for row in rows]


def pick(*names: str) -> Callable[[Row], list[Row]]:
    """One row with these parts of the document."""
    return lambda document: [{name: document[name] for name in names}]


def findings_of(document: Row) -> list[Row]:
    witness = Witness(first="[1]", second="[]", event="x > 0")
    return [f | {"witness": str(witness) if f["witness"] else None} for f in document["findings"]]


def aggregate_of(document: Row) -> list[Row]:
    reasons = {f"wrong_{r}": document["set_aside"].get(r, 0) for r in ("format", "version", "task", "length", "range")}
    return [{name: document[name] for name in ("task", "people", "added", "known")} | reasons]


def buckets_of(document: Row) -> list[Row]:
    ends = zip(document["edges"], document["edges"][1:], document["shares"])
    return [{"from": low, "to": high, "share": share} for low, high, share in ends]


def columns_of(document: Row) -> list[Row]:
    found = document["tables"].items()
    return [{"table": table, "column": name, "type": kind} for table, s in found for name, kind in s.items()]


def pictures_of(document: Row) -> list[Row]:
    rows = []
    for name, pair in document.items():
        found = zip(map(str, pair["outputs"]), pair["p"], pair["q"], pair["losses"])
        rows += [dict(zip(("picture", "output", "p", "q", "loss"), (name, *row))) for row in found]
    return rows


BOUNDS = ("bounds", "nobounds/hospital.toml", "visits")
H = "hospital/hospital.toml"
CASES = [
    Case("init", ("hospital/visits.parquet", "--yes", "--out", "NEW.toml"), columns_of),
    Case("check", (H,), lambda document: document),
    Case("check", (H, "--values"), lambda document: document),
    Case("import", ("hospital/visits.parquet", "--out", "NEW.parquet", "--type", "ward=integer"),
         lambda document: document["unread"]),
    Case("preview", (H, COUNT, "--epsilon", "1"), errors_of),
    Case("preview", (H, MEDIAN, "--epsilon", "1"), errors_of),
    Case("preview", (H, MEDIAN, "--epsilon", "1", "--ends"), errors_of),
    Case("ask", (H, MEDIAN, "--epsilon", "0.2", "--ends"), lambda document: document["rows"]),
    Case("preview", ("nobounds/hospital.toml", AUTO, "--epsilon", "1", "--bounds", "auto"),
         lambda document: errors_of(document["question"])),
    Case("ask", (H, COUNT, "--epsilon", "1"), lambda document: document["rows"]),
    Case("explain", (H, COUNT), lambda document: [
        {"line": i, "text": line} for i, line in enumerate(document["explanation"].splitlines(), 1)]),
    Case("batch", (H, "script.sql", "--epsilon", "0.5"), lambda document: number([part["rows"] for part in document])),
    Case("batch", (H, "script.sql", "--epsilon", "0.5", "--preview"),
         lambda document: number([errors_of(part) for part in document["questions"]])),
    Case("bounds", (*BOUNDS[1:], "cost", "--epsilon", "8"), pick("of", "low", "high", "above", "doubt", "codebook")),
    Case("bounds", (*BOUNDS[1:], "cost", "--epsilon", "8", "--preview"), pick("of", "above", "words")),
    Case("bounds", (*BOUNDS[1:], "--by", "ward", "--by", "emergency", "--epsilon", "30"), lambda document: [
        {name: document[name] for name in ("of", "share", "max_rows", "max_groups", "max_rows_per_group")}
        | {"by": "ward, emergency"}]),
    Case("bounds", (*BOUNDS[1:], "--by", "ward", "--epsilon", "30", "--preview"), errors_of),
    Case("budget", (H,), lambda document: document["charges"]),
    Case("token list", (H,), lambda document: document["tokens"]),
    Case("demo", ("--folder", "tour"), lambda document: document["rows"]),
    Case("audit", ("--quick",), findings_of),
    Case("learn", (), lambda document: [{"name": name, "about": about} for name, about in document.items()]),
    Case("publish release", ("plan.toml", "--preview"), lambda document: document["tables"]),
    Case("publish verify", ("bundle",), lambda document: document["checks"]),
    Case("publish ask", ("bundle", "SELECT ward, COUNT(*) AS n FROM release GROUP BY ward"),
         lambda document: document["rows"]),
    Case("publish go-on", ("plan.toml", "months", "--periods", "0"), lambda document: document["periods"]),
    Case("publish check", ("plan.toml", "bundle", "--epsilon", "0.1", "--ways", "2"),
         lambda document: document["tables"]),
    Case("help", (), lambda document: [{"topic": name, "about": about} for name, about in document.items()]),
    Case("attack", (), lambda document: [{"name": name, "about": about} for name, about in document.items()]),
    Case("show", ("rr", "laplace", "--epsilon", "2"), pictures_of),
    Case("learn", (), lambda document: [{"name": name, "about": about} for name, about in document.items()]),
    Case("learn", ("laplace",), pick("name", "title", "about", "text")),
    Case("attack", ("sum-order",), lambda document: document["picture"]),
    Case("ledger verify", (H,), lambda document: [
        document | {"head": json.dumps(document["head"], separators=(",", ":"))}]),
    Case("ledger history", (H,), lambda document: document),
    Case("ledger burndown", (H,), lambda document: document["analysts"]),
    Case("local plan", ("colour", "--labels", "red,green", "--epsilon", "1", "--people", "500"),
         lambda document: document["candidates"]),
    Case("local aggregate", ("colour.json", "colour.jsonl", "--state", "colour.state"), aggregate_of),
    Case("local estimate", ("colour.state",), lambda document: document["rows"]),
    Case("local estimate", ("hybrid.state",), pick("mean", "low", "high", "consistent")),
    Case("local estimate", ("wave.state",), buckets_of),
]  # fmt: skip

# Commands that print no rows, and what they do instead.
WITHOUT_ROWS = {
    "serve": "runs until it is told to stop",
    "mcp": "speaks its protocol over standard output until its agent leaves",
    "token create": "prints the token alone, so that a shell can keep it",
    "token revoke": "prints what is revoked",
    "ledger show": "prints one entry as it was written, which is JSON",
    "ledger export": "writes the log out, in forms of its own",
    "ledger head": "prints one line of JSON to be kept",
    "ledger backup": "makes a file",
    "ledger verifier": "prints a program",
    "ledger amend": "puts a declaration on record",
    "ledger renew": "puts a declaration on record",
    "ledger resume": "puts a declaration on record",
    "ledger restore": "puts a declaration on record",
    "local encode": "writes reports in their wire format",
}


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main.app, list(map(str, arguments)))


def good(*arguments: object) -> bytes:
    done = call(*arguments)
    assert done.exit_code == 0, (arguments, done.exception, done.output)
    return done.stdout_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the demo, the demo without bounds, a script, and reports of the local model, as commands see it."""
    place = tmp_path_factory.mktemp("output")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        demo.write(Path("hospital"))
        path = Path(shutil.copytree("hospital", "nobounds")) / "hospital.toml"
        text = path.read_text()
        assert "bounds = [0, 20_000], " in text and "epsilon = 3\n" in text
        path.write_text(text.replace("bounds = [0, 20_000], ", "").replace("epsilon = 3\n", "epsilon = 90\n"))
        Path("script.sql").write_text(
            "SELECT COUNT(*) AS n FROM visits;\nSELECT ward, COUNT(*) AS n FROM visits GROUP BY 1"
        )
        Path("plan.toml").write_text(
            'name = "wards"\ncodebook = "nobounds/hospital.toml"\ntable = "visits"\nepsilon = 0.1\n'
            'columns = ["ward", "emergency"]\n'
            '[[series]]\nname = "months"\nquestion = "SELECT COUNT(*) FROM visits"\nby = "arrival"\nevery = "month"\n'
            'first = 2023-01-01\nperiods = 2\ndays_per_unit = 3\nstate = "private"\n'
        )
        good("publish", "plan.toml", "--out", "bundle")
        TokenStore(Path(H).with_suffix(".tokens")).create(name="ana", role=Role.ANALYST)
        Path("colours.txt").write_text("red\ngreen\nred\n" * 100)
        Path("ages.txt").write_text("40\n" * 300)
        domains: dict[str, list[object]] = {
            "colour": ["--labels", "red,green"],
            "hybrid": ["--low", 0, "--high", 100, "--protocol", "hybrid"],
        }
        domains["wave"] = ["--low", 0, "--high", 100, "--protocol", "wave"]
        for name, domain in domains.items():
            good("local", "plan", name, *domain, "--epsilon", 4, "--people", 300, "--out", f"{name}.json")
            answers = "colours.txt" if name == "colour" else "ages.txt"
            good("local", "encode", f"{name}.json", answers, "--out", f"{name}.jsonl")
            good("local", "aggregate", f"{name}.json", f"{name}.jsonl", "--state", f"{name}.state")
        good("ask", H, COUNT, "--epsilon", "1", "--analyst", '=ana,"b"')
        good("ask", H, COUNT, "--epsilon", "1")
        yield place


@pytest.fixture(scope="module")
def outcome() -> Any:
    return attacks.run("sum-order")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> None:
    """What is measured anew at each run is fixed, so that formats can be compared."""
    witness = Witness(first="[1]", second="[]", event="x > 0")
    found = [
        Finding(name="laplace", method="exact", verdict=Verdict.HOLDS, claimed=1.0, lower=float("inf")),
        Finding(name="sum, of \"ages\"", method="black box", verdict=Verdict.HOLDS, samples=10**12, witness=witness),
    ]  # fmt: skip
    monkeypatch.setattr(installation, "audit", lambda **_: found)
    monkeypatch.setattr(attacks, "run", lambda _: outcome)


def print_in(form: Format, case: Case) -> bytes:
    """What the command prints in a format; NEW becomes a name that is not there yet."""
    arguments = [argument.replace("NEW", f"{form}-{len(list(Path().iterdir()))}") for argument in case.arguments]
    return good(*case.command.split(), *arguments, "--format", form)


def read_csv(made: bytes, schema: pa.Schema) -> pa.Table:
    """CSV with the types of a schema; a text is NULL only where it has no quotes."""
    types = pa_csv.ConvertOptions(column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False)
    lines = pa_csv.ParseOptions(newlines_in_values=True)
    return pa_csv.read_csv(io.BytesIO(made), convert_options=types, parse_options=lines)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_format_has_the_same_rows(folder: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Parquet, CSV and JSON hold equal rows, and the table is for eyes."""
    monkeypatch.chdir(folder)
    drawn = print_in(Format.TABLE, case).decode()
    rows = pq.read_table(pa.BufferReader(print_in(Format.PARQUET, case)))
    text = print_in(Format.CSV, case)
    document = json.loads(print_in(Format.JSON, case))
    assert drawn.strip() and rows.num_rows > 0
    assert read_csv(text, rows.schema).equals(rows)
    head, *lines = csv.reader(io.StringIO(text.decode(), newline=""))
    assert head == rows.column_names and len(lines) == rows.num_rows
    assert not set("█▒░\x1b…") & set(text.decode())
    listed = rows.to_pylist()
    if case.command == "local plan":  # its document has numbers in words
        assert [row["protocol"] for row in case.rows_of(document)] == [row["protocol"] for row in listed]
    else:
        assert [{name: row[name] for name in head} for row in case.rows_of(document)] == listed


def leaves(app: typer.Typer) -> dict[str, Any]:
    """Every command of an app under its whole name."""

    def walk(found: Any, name: str) -> Iterator[tuple[str, Any]]:
        command = found.load() if isinstance(found, LateCommand) else found
        parts = getattr(command, "commands", None)
        if parts is None:
            yield name, command
            return
        for part, below in parts.items():
            yield from walk(below, f"{name} {part}".strip())

    return dict(walk(get_command(app), ""))


def find_unlisted(app: typer.Typer) -> list[str]:
    """Commands that neither the table of cases nor the list of those without rows knows, or that lack the options."""
    tried = {case.command for case in CASES}
    found = []
    for name, command in leaves(app).items():
        options = {option for parameter in command.params for option in parameter.opts}
        known = name in tried and {"--format", "--json", "--out"} <= options
        if not known and (name not in WITHOUT_ROWS or "--format" in options):
            found.append(name)
    return found


def test_every_command_is_in_the_table() -> None:
    """A command that prints rows is tried in every format; others are on a list with the reason."""
    assert find_unlisted(main.app) == []
    assert {case.command for case in CASES} | WITHOUT_ROWS.keys() == leaves(main.app).keys()


def test_the_walk_can_fail() -> None:
    """Negative control: a new command, and an old one without the options, are seen."""
    app = typer.Typer()
    app.command("count")(lambda: None)
    app.command("check")(lambda: None)
    below = typer.Typer(name="ledger")
    below.command("show")(take_groups(with_output))
    app.add_typer(below)
    assert find_unlisted(app) == ["count", "check", "ledger show"]


def with_output(*, output: OutputOptions) -> None:
    """A command that would print rows."""


def test_no_command_looks_at_the_format_by_itself() -> None:
    """The flag for JSON and the writer of JSON documents are named in one module."""
    modules = Path(discreet.cli.__file__).parent.glob("*.py")
    assert [path.name for path in modules if "as_json" in path.read_text()] == ["output.py"]


@pytest.mark.usefixtures("settled")
def test_the_short_form_is_the_long_form(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--json is --format json, byte for byte, and both together are no contradiction."""
    monkeypatch.chdir(folder)
    long = good("ask", H, COUNT, "--epsilon", "1", "--format", "json")
    assert good("ask", H, COUNT, "--epsilon", "1", "--json") == long
    assert good("ask", H, COUNT, "--epsilon", "1", "--json", "--format=json") == long


def test_plans_have_full_numbers_in_csv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the table rounds, the rows do not."""
    monkeypatch.chdir(folder)
    from discreet.exact import ln
    from discreet.local.domain import Domain
    from discreet.local.protocol_choice import choose

    choice: Choice = choose(Domain(labels=("red", "green")), epsilon=ln(3), n=500)
    text = good("local", "plan", "c", "--labels", "red,green", "--epsilon", "ln(3)", "--people", 500, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    assert [float(row["variance"]) for row in rows] == [one.variance for one in choice.candidates]


def test_texts_and_numbers_in_csv() -> None:
    """Quotes, commas and lines stay inside a text; NULL is empty and an empty text is not; numbers are whole."""
    rows = pa.table(
        {
            "text": ['a,"b"\nc', "", None, "=1+1"],
            "real": [0.1 + 0.2, 1e300, None, -5e-324],
            "integer": pa.array([2**62 + 1, None, -1, 0], pa.int64()),
            "yes": [True, False, None, True],
        }
    )
    text = to_csv(rows)
    assert text.decode().startswith(
        '"text","real","integer","yes"\n"a,""b""\nc",0.30000000000000004,4611686018427387905,'
    )
    assert read_csv(text, rows.schema).equals(rows)
    assert to_csv(rows.slice(0, 0)) == b'"text","real","integer","yes"\n'


def test_json_has_no_infinities() -> None:
    """What is no number in JSON is null, at any depth."""
    assert json.loads(to_json({"a": [1.5, float("nan")], "b": {"c": float("-inf")}})) == {
        "a": [1.5, None],
        "b": {"c": None},
    }


def test_batches_of_different_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with two types is text, and a column called question stays apart from the number."""
    monkeypatch.chdir(folder)
    Path("mixed.sql").write_text(
        "SELECT ward AS k, COUNT(*) AS question FROM visits GROUP BY ward; SELECT COUNT(*) AS k FROM visits"
    )
    made = good("batch", H, "mixed.sql", "--epsilon", "0.2", "--format", "parquet")
    rows = pq.read_table(pa.BufferReader(made))
    assert rows.schema.field("k").type == pa.string() and rows["question_"].to_pylist() == [1] * 8 + [2]
    assert int(rows["k"][8].as_py()) > 0 and rows["question"][8].as_py() is None


def charges(path: str) -> int:
    with open_codebook(path) as curator:
        return len(curator.history())


@pytest.fixture
def fresh(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A codebook without a ledger, in the present folder."""
    shutil.copytree(folder / "hospital", tmp_path / "hospital", ignore=shutil.ignore_patterns("*.ledger*"))
    monkeypatch.chdir(tmp_path)
    return H


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--json", "--format", "csv"), "--json is short for --format json and contradicts --format csv"),
        (("--json", "--format", "table"), "contradicts --format table"),
        (("--format", "csv", "--out", "nowhere/x.csv"), "There is no folder nowhere"),
        (("--out", "hospital/hospital.toml"), "exists. Remove it or give another --out"),
        (("--out", "hospital"), "exists. Remove it"),
        (("--out", "x" * 300 + ".json"), "cannot be written: File name too long. Give another --out"),
    ],
)
def test_refusals_come_before_the_charge(fresh: str, options: tuple[str, ...], words: str) -> None:
    """A place or a format that cannot be is refused with exit code 2, and nothing is charged."""
    before = Path(fresh).read_text()
    done = call("ask", fresh, COUNT, "--epsilon", "1", *options)
    assert isinstance(done.exception, UsageError) and done.exception.exit_code == 2
    assert words in str(done.exception) and "Nothing was charged" in str(done.exception)
    assert charges(fresh) == 0 and Path(fresh).read_text() == before


def test_unknown_formats_are_refused(fresh: str) -> None:
    """With the names of the known ones."""
    done = call("ask", fresh, COUNT, "--epsilon", "1", "--format", "xml")
    assert done.exit_code == 2 and "parquet" in done.output and charges(fresh) == 0


def test_a_ledger_that_comes_up_is_not_overwritten(fresh: str) -> None:
    """The charge stays on record, the answer can be had again for free, and the message says so."""
    done = call("ask", fresh, COUNT, "--epsilon", "1", "--format", "csv", "--out", "hospital/hospital.ledger")
    assert isinstance(done.exception, UsageError) and "asking the same again is free" in str(done.exception)
    assert charges(fresh) == 1
    assert b"Surgery" in good("ask", fresh, COUNT, "--epsilon", "1", "--format", "csv")
    assert charges(fresh) == 1


def test_files_say_their_format(fresh: str) -> None:
    """The ending of a new file is its format; any other is a table, without colours; a word is stronger."""
    for name in ("a.parquet", "a.csv", "a.json", "a.txt"):
        assert good("ask", fresh, COUNT, "--epsilon", "1", "--out", name) == b""
    rows = pq.read_table("a.parquet")
    assert read_csv(Path("a.csv").read_bytes(), rows.schema).equals(rows)
    assert json.loads(Path("a.json").read_text())["rows"] == rows.to_pylist()
    assert "Surgery" in Path("a.txt").read_text() and "\x1b" not in Path("a.txt").read_text()
    good("ask", fresh, COUNT, "--epsilon", "1", "--out", "b.txt", "--format", "csv")
    assert Path("b.txt").read_bytes() == Path("a.csv").read_bytes()


def test_rows_alone_come_with_their_cost_beside_them(fresh: str) -> None:
    """What was charged and what is left is said on standard error, so that nobody spends blind."""
    done = call("ask", fresh, COUNT, "--epsilon", "1", "--format", "csv")
    assert done.stderr.startswith("cost ") and "; left " in done.stderr and "cost" not in done.stdout
    assert call("ask", fresh, COUNT, "--epsilon", "1", "--format", "csv").stderr.startswith("given before, free now")
    assert "nothing was charged" in call("preview", fresh, COUNT, "--epsilon", "1", "--format", "csv").stderr


def test_a_terminal_gets_no_parquet(fresh: str) -> None:
    """It is refused before the charge, with the fix; a CSV is printed there as it is."""
    code, seen = on_terminal("ask", Path(fresh).resolve(), COUNT, "--epsilon", "1", "--format", "parquet")
    assert code == 2 and "Add --out FILE" in " ".join(seen.split()) and "PAR1" not in seen
    assert charges(fresh) == 0
    code, seen = on_terminal("ask", Path(fresh).resolve(), COUNT, "--epsilon", "1", "--format", "csv")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert code == 0 and '"ward","n","n_low","n_high"' in plain and "█" not in seen


@pytest.mark.parametrize("options", [("--json",), ("--format", "json"), ("--format=json",)])
def test_errors_in_json(
    fresh: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """However JSON is asked for, an error is JSON on standard output; otherwise it is words on standard error."""
    for extra, is_json in ((options, True), (("--format", "csv"), False)):
        monkeypatch.setattr(sys, "argv", ["discreet", "ask", fresh, COUNT, *extra])
        with pytest.raises(SystemExit) as left:
            main.main()
        seen = capsys.readouterr()
        assert left.value.code == 2
        if is_json:
            assert seen.err == "" and json.loads(seen.out)["error"]["code"] == "usage"
        else:
            assert seen.out == "" and "discreet help usage" in seen.err


def test_only_json_is_json() -> None:
    """The option's value counts, not a word of the question."""
    assert not wants_json(["ask", "h.toml", "json", "--format", "csv"])
    assert not wants_json([])


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("width", [60, 120])
def test_tables_fit_and_cut_no_number(folder: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No line is wider than the terminal, and no number ends in dots, which would make another number of it."""
    monkeypatch.chdir(folder)
    plan = ("local", "plan", "c", "--labels", "red,green", "--epsilon", "1", "--people", "500")
    for words in (("ask", H, COUNT, "--epsilon", "1"), ("budget", H), ("local", "estimate", "colour.state"), plan):
        done = CliRunner().invoke(main.app, words, env={"COLUMNS": str(width)})
        assert done.exit_code == 0
        table = done.output.partition("krr:")[0].partition(" reports.")[0]
        assert max(map(len, table.splitlines())) <= width
        assert not re.search(r"\d…", table)
    assert all(name in table for name in ("krr", "hadamard", "chosen")) and ("───" in table) == (width > 80)


def test_pictures_have_no_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--svg and a format of rows contradict each other."""
    monkeypatch.chdir(folder)
    assert good("ledger", "burndown", H, "--svg").startswith(b"<svg")
    assert isinstance(call("ledger", "burndown", H, "--svg", "--format", "csv").exception, UsageError)


def test_groups_of_options() -> None:
    """A command gets the group as one value; options that it leaves out are unknown to the shell."""
    seen: list[OfferOptions] = []

    def spend(name: str, *, offer: Annotated[OfferOptions, leave_out("error", "bounds")]) -> None:
        seen.append(offer)

    app = typer.Typer()
    # The annotations of a function inside a function are not found by name.
    spend.__annotations__ = {"name": str, "offer": Annotated[OfferOptions, leave_out("error", "bounds")]}
    app.command()(take_groups(spend))
    assert CliRunner().invoke(app, ["x", "--epsilon", "0.5", "--public", "a=b", "--public", "c=d"]).exit_code == 0
    assert seen == [OfferOptions(epsilon="0.5", public=["a=b", "c=d"])]
    assert CliRunner().invoke(app, ["x", "--error", "n=1"]).exit_code == 2
    spend.__annotations__["offer"] = Annotated[OfferOptions, leave_out("erorr")]
    with pytest.raises(TypeError, match="no option erorr"):
        take_groups(spend)


def test_explain_takes_an_offer(fresh: str) -> None:
    """Without one it is a tenth of the budget; a level without a price is refused."""
    plain = good("explain", fresh, COUNT)
    assert good("explain", fresh, COUNT, "--epsilon", "0.3") == plain
    assert good("explain", fresh, COUNT, "--epsilon", "1") != plain
    for options in (("--level", "0.9"), ("--delta", "1e-9"), ("--epsilon", "1", "--rho", "1")):
        done = call("explain", fresh, COUNT, *options)
        assert isinstance(done.exception, DiscreetError) and "Say what it may cost" in str(done.exception)
