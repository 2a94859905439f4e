"""The command line: every command in a pipe and on a terminal, every kind of error with its exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet import demo
from discreet.cli import ask
from discreet.cli.late_commands import LateCommand
from discreet.cli.main import Commands
from discreet.codebook import Codebook
from discreet.errors import BudgetExceeded, InternalError
from tests.cli.commands import Run, on_terminal

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_help_names_every_command(run: Run) -> None:
    """--help lists the commands, and each has a help of its own with an example of use."""
    code, out, _ = run("--help")
    assert code == 0
    for name in ("init", "check", "preview", "ask", "batch", "bounds", "explain", "budget", "demo", "learn"):
        assert re.search(rf"^  {name} +\w", out, re.M), name
        code, text, _ = run(name, "--help")
        assert code == 0 and "--json" in text
    assert max(map(len, out.splitlines())) <= 80 and "..." not in out.partition("Commands:")[2]


def test_the_help_says_what_the_commands_say() -> None:
    """The line of each command in the help is the first of its own help, and every module of commands is listed."""
    for name, (place, line) in Commands.late.items():
        command = LateCommand(name, place, line).load()
        assert command.name == name and command.get_short_help_str(limit=100) == line


def test_a_shell_completes_commands_and_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and help of commands come from the table, options from the command itself."""
    monkeypatch.setenv("_DISCREET_COMPLETE", "complete_bash")
    for typed, completed in {"discreet bu": {"budget"}, "discreet ask --eps": {"--epsilon"}}.items():
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        assert set(run()[1].split()) == completed
    assert run("--show-completion", "bash")[0] == 0


def test_help_is_light() -> None:
    """Nothing heavy is imported to show the help: no engine, no parser, no tables, no codebook."""
    heavy = "{'duckdb', 'sqlglot', 'pyarrow', 'pydantic', 'numpy', 'scipy', 'pandas', 'polars', 'rich.table'}"
    code = f"import sys, discreet.cli.main; sys.exit(', '.join({heavy} & sys.modules.keys()) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    assert done.returncode == 0, done.stderr


def test_version(run: Run) -> None:
    """--version shows it and leaves."""
    assert run("--version")[:2] == (0, f"discreet {discreet.__version__}\n")


def test_preview(run: Run, hospital: Path) -> None:
    """Cost and errors, as a table and as JSON; nothing is charged."""
    code, out, err = run("preview", hospital, COUNT, "--epsilon", "0.5")
    assert (code, err) == (0, "") and "nothing was charged" in out and "8 public groups" in out
    code, out, _ = run("preview", hospital, COUNT, "--epsilon", "0.5", "--json")
    shown = json.loads(out)
    assert code == 0 and shown["fits"] and shown["columns"][0]["name"] == "n"


def test_ask(run: Run, hospital: Path) -> None:
    """Values with intervals, as a table with bars and as JSON with a receipt."""
    code, out, _ = run("ask", hospital, COUNT, "--epsilon", "1")
    assert code == 0 and "Emergency" in out and "█" in out and "left" in out
    assert "\x1b" not in out
    code, out, _ = run("ask", hospital, COUNT, "--rho", "0.01", "--level", "0.9", "--analyst", "ana", "--json")
    given = json.loads(out)
    assert code == 0 and len(given["rows"]) == 8 and {"ward", "n", "n_low", "n_high"} == given["rows"][0].keys()
    assert given["receipt"]["analyst"] == "ana" and given["receipt"]["level"] == "90%" and not given["replayed"]


def test_ask_for_an_error(run: Run, hospital: Path) -> None:
    """The price of a wanted error is found, and the intervals have that width."""
    code, out, _ = run("ask", hospital, COUNT, "--error", "n=500", "--json")
    row = json.loads(out)["rows"][0]
    assert code == 0 and row["n_high"] - row["n_low"] <= 1000


def test_questions_from_files_and_pipes(
    run: Run, hospital: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question may come from a file or from standard input, and only from one place."""
    file = tmp_path / "question.sql"
    file.write_text(COUNT)
    assert run("preview", hospital, "--file", file, "--epsilon", "1")[0] == 0
    with file.open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert run("preview", hospital, "-", "--epsilon", "1")[0] == 0
    for arguments in ([COUNT, "--file", file], [], ["--file", tmp_path / "missing.sql"]):
        code, _, err = run("preview", hospital, *arguments, "--epsilon", "1")
        assert code == 2 and "charged" in err


SCRIPT = """
-- two questions; and a semicolon in a comment
SELECT COUNT(*) AS n FROM visits;
SELECT ward, COUNT(*) AS n FROM visits WHERE ward <> ';' GROUP BY ward;
"""


def test_batch(run: Run, hospital: Path, tmp_path: Path) -> None:
    """A file of questions: previewed for free, asked as one charge, as tables and as JSON."""
    script = tmp_path / "questions.sql"
    script.write_text(SCRIPT)
    code, out, _ = run("batch", hospital, script, "--epsilon", "1", "--preview")
    assert code == 0 and "question 2" in out and "nothing was charged" in out
    code, out, _ = run("batch", hospital, script, "--epsilon", "1", "--weights", "1,3", "--preview", "--json")
    assert code == 0 and len(json.loads(out)["questions"]) == 2
    code, out, _ = run("batch", hospital, script, "--epsilon", "1", "--json")
    answers = json.loads(out)
    assert code == 0 and [len(answer["rows"]) for answer in answers] == [1, 8]
    code, out, _ = run("batch", hospital, script, "--epsilon", "1")
    assert code == 0 and "given before" in out and "Emergency" in out
    code, out, _ = run("budget", hospital, "--json")
    assert len(json.loads(out)["charges"]) == 1


@pytest.mark.parametrize(
    "bad",
    [
        ("", ["--epsilon", "1"], "holds no question"),
        ("SELECT 'a", ["--epsilon", "1"], "not closed"),
        (SCRIPT, [], "Say what all of it may cost"),
        (SCRIPT, ["--epsilon", "1", "--weights", "1"], "one for each question"),
        (SCRIPT, ["--epsilon", "1", "--weights", "1,x"], "must be a number"),
    ],
)
def test_bad_batches(run: Run, hospital: Path, tmp_path: Path, bad: tuple[str, list[str], str]) -> None:
    """Refused with what to do, and free."""
    text, options, words = bad
    script = tmp_path / "questions.sql"
    script.write_text(text)
    code, _, err = run("batch", hospital, script, *options)
    assert code == 2 and words in " ".join(err.split()) and "Nothing was charged" in " ".join(err.split())


def test_public_tables(run: Run, hospital: Path, tmp_path: Path) -> None:
    """A released answer, or a file that the analyst brings, is a table of the next question."""
    code, out, _ = run("ask", hospital, COUNT, "--epsilon", "1", "--json")
    answer = tmp_path / "answer.json"
    answer.write_text(out)
    listed = tmp_path / "mine.csv"
    listed.write_text("ward,mine\nSurgery,yes\nMaternity,no\n")
    joined = "SELECT COUNT(*) AS n FROM visits v JOIN t ON v.ward = t.ward"
    for file in (answer, listed):
        code, out, err = run("ask", hospital, joined, "--epsilon", "0.5", "--public", f"t={file}", "--json")
        assert code == 0, err
        assert json.loads(out)["rows"][0]["n"] > 0
    for bad in ("t", "t=", f"t={tmp_path / 'no.csv'}"):
        code, _, err = run("ask", hospital, joined, "--epsilon", "0.5", "--public", bad)
        assert code == 2 and "Nothing was charged" in " ".join(err.split())


def test_explain(run: Run, hospital: Path) -> None:
    """The plan and its noise, as text and as JSON."""
    code, out, _ = run("explain", hospital, COUNT)
    assert code == 0 and "rows of visits" in out and "noise" in out
    assert "rows of visits" in json.loads(run("explain", hospital, COUNT, "--json")[1])["explanation"]


def test_budget(run: Run, hospital: Path) -> None:
    """What is left, what it means, and the charges."""
    code, out, _ = run("budget", hospital)
    assert code == 0 and "ε 3 of 3" in out and "50:50" in out
    shown = json.loads(run("budget", hospital, "--json")[1])
    assert shown["left"] <= shown["whole"] == 3 and shown["charges"] == []


def test_check(run: Run, hospital: Path, tmp_path: Path) -> None:
    """0 where nothing is wrong, 2 where something is, with every line in JSON, too."""
    code, out, _ = run("check", hospital, "--all")
    assert code == 0 and "0 wrong" in out and "the data has all 10 declared columns" in out
    bad = tmp_path / "bad.toml"
    text = demo.CODEBOOK.replace('"visits.parquet"', f'"{hospital.parent}/visits.parquet"')
    bad.write_text(text.replace("diagnosis =", "diagnose ="))
    code, out, _ = run("check", bad, "--json")
    lines = {line["topic"]: line for line in json.loads(out)}
    assert code == 2
    assert lines["visits.diagnose"]["mark"] == "wrong" and "'diagnosis'" in lines["visits.diagnose"]["fix"]
    assert lines["patients"]["mark"] == "wrong" and "patients.parquet" in lines["patients"]["finding"]


def test_the_cause_of_an_unreadable_source_is_told_beside_it(run: Run, hospital: Path) -> None:
    """Whoever runs a command has the file: the engine may say what is wrong with it."""
    (hospital.parent / "visits.parquet").write_bytes(b"not parquet" * 9)
    for command in (["check", hospital], ["ask", hospital, "SELECT COUNT(*) AS n FROM visits", "--share", "0.1"]):
        code, out, err = run(*command)
        said = " ".join((out + err).split())
        assert code == 2 and "'visits' cannot be read" in said and "For the owner of the data:" in said
        assert "No magic bytes" in said


@pytest.mark.parametrize(
    ("unit", "word", "true"), [("row", "exact_rows", 4), ("who", "exact_units", 3)], ids=["rows", "units"]
)
def test_check_tells_the_owner_whether_an_exact_size_is_true(
    run: Run, tmp_path: Path, unit: str, word: str, true: int
) -> None:
    """With --values only. A question takes the declared number and does not fail."""
    (tmp_path / "v.csv").write_text("who,age\n1,2\n1,3\n2,4\n3,5\n")
    limits = "" if unit == "row" else "max_rows = 2\n"
    for size, code, words in ((true, 0, f"exactly {true}"), (9, 2, f"9 is declared, and the data has {true}")):
        book = tmp_path / f"{size}.toml"
        book.write_text(
            f'name = "v{size}"\nunit = "{unit}"\nneighbours = "replace"\nbudget = {{ epsilon = 1 }}\n\n'
            f'[tables.v]\nsource = "v.csv"\n{limits}{word} = {size}\ncolumns = {{ who = "integer", age = "integer" }}\n'
        )
        found, out, _ = run("check", book, "--values")
        assert found == code and words in " ".join(out.split()) and f"v: {word}" in out
        assert run("check", book)[0] == 0
        count = "COUNT(*)" if unit == "row" else "COUNT(DISTINCT who)"
        found, out, _ = run("ask", book, f"SELECT {count} AS n FROM v", "--epsilon", "1", "--json")
        assert found == 0 and json.loads(out)["rows"][0]["n"] == size


def test_wrong_codebooks_leave_with_2(run: Run, tmp_path: Path) -> None:
    """A wrong codebook is refused by every command that reads one, in the same words."""
    bad = tmp_path / "bad.toml"
    bad.write_text('name = "x"\n')
    for command in (["check", bad], ["ask", bad, COUNT, "--epsilon", "1"], ["budget", bad], ["explain", bad, COUNT]):
        code, out, err = run(*command)
        assert code == 2 and out == "" and "unit is missing" in err and "discreet help codebook" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([COUNT], "--epsilon 0.5, --rho 0.01, or --error n=12"),
        ([COUNT, "--epsilon", "1", "--rho", "1"], "--epsilon 0.5, --rho 0.01, or --error n=12"),
        ([COUNT, "--epsilon", "much"], "--epsilon must be a number"),
        ([COUNT, "--epsilon", "inf"], "--epsilon must be a number"),
        ([COUNT, "--error", "12"], "--error takes a column and a size"),
        ([COUNT, "--error", "n=wide"], "--error must be a number"),
        ([COUNT, "--epsilon", "-1"], "epsilon must be above zero"),
        ([COUNT, "--epsilon", "1", "--level", "2"], "level must be"),
        (["SELECT * FROM visits", "--epsilon", "1"], "single rows"),
        (["SELECT COUNT(*) FROM nurses", "--epsilon", "1"], "nurses"),
    ],
)
def test_wrong_questions_leave_with_2(run: Run, hospital: Path, arguments: list[str], words: str) -> None:
    """What the analyst can mend is said on standard error, without a traceback, and nothing is charged."""
    code, out, err = run("ask", hospital, *arguments)
    text = " ".join(err.split())
    assert code == 2 and out == "" and words in text and "Traceback" not in err


def test_privacy_refusals_leave_with_3(run: Run, hospital: Path) -> None:
    """More than the budget is a matter of privacy."""
    code, _, err = run("ask", hospital, COUNT, "--epsilon", "50")
    assert code == 3 and "discreet help " in err


def test_errors_in_json(run: Run, hospital: Path) -> None:
    """With --json an error is JSON, too, with the same exit code."""
    code, out, err = run("ask", hospital, COUNT, "--json")
    assert code == 2 and err == "" and json.loads(out)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("error", "code"), [(BudgetExceeded("x"), 3), (InternalError("x"), 4), (KeyboardInterrupt(), 130)]
)
def test_exit_codes_by_root(run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int) -> None:
    """Each root of the error tree has its own exit code; an interrupt has the shell's."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(ask, "open_curator", fail)
    assert run("explain", "x.toml", COUNT)[0] == code


def test_unknown_words_leave_with_2(run: Run) -> None:
    """Unknown commands and options are usage errors."""
    assert run("aks")[0] == 2 and run("ask", "--epsilom", "1")[0] == 2


def test_a_closed_pipe_is_no_error(hospital: Path) -> None:
    """A reader that leaves early ends the program quietly."""
    command = f'"{sys.executable}" -m discreet.cli.main ask "{hospital}" "{COUNT}" --epsilon 1 --json | head -c 1'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603  # our own words
    assert done.returncode == 0 and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_init_without_questions(run: Run, hospital: Path, tmp_path: Path) -> None:
    """Blanks are named and refused by check; asking again changes nothing that was not said."""
    out_file = tmp_path / "visits.toml"
    data = hospital.parent / "visits.parquet"
    code, out, _ = run("init", data, "--out", out_file, "--yes")
    told = " ".join(out.split())
    assert code == 0 and "Fill in: unit, max_rows, epsilon." in told and "no value was read" in told
    before = out_file.read_text()
    code, out, _ = run("init", data, "--out", out_file, "--yes")
    assert code == 0 and "nothing to add" in " ".join(out.split()) and out_file.read_text() == before
    (tmp_path / "notes.toml").write_text("Dear diary")
    code, _, err = run("init", data, "--out", tmp_path / "notes.toml", "--yes")
    assert code == 2 and "no codebook" in err and (tmp_path / "notes.toml").read_text() == "Dear diary"
    code, _, err = run("check", out_file)
    assert code == 2 and "unit is still blank" in err


def test_init_with_everything_said(run: Run, hospital: Path, tmp_path: Path) -> None:
    """What was said is in the codebook, and the data fits it."""
    out_file = tmp_path / "visits.toml"
    said = ["--unit", "patient_id", "--max-rows", 20, "--epsilon", "0.1", "--delta", "1e-9"]
    code, out, _ = run("init", hospital.parent / "visits.parquet", "--out", out_file, *said, "--json")
    assert code == 0 and json.loads(out)["blank"] == [] and json.loads(out)["tables"]["visits"]["age"] == "integer"
    assert run("check", out_file)[0] == 0
    assert str(Codebook.load(out_file).budget) == "Budget(ε = 0.1 at δ = 1e-09)"
    assert run("ask", out_file, "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.05")[0] == 0


@pytest.mark.parametrize("said", [["--epsilon", "lots"], ["--rho", "nan"], ["--max-rows", "0"]])
def test_init_refuses_what_is_no_number(run: Run, hospital: Path, tmp_path: Path, said: list[str]) -> None:
    """Nothing is written where a number is none."""
    out_file = tmp_path / "x.toml"
    assert run("init", hospital.parent / "visits.parquet", "--out", out_file, "--yes", *said)[0] == 2
    assert not out_file.exists()


def test_init_beside_the_data(run: Run, tmp_path: Path) -> None:
    """Without --out the codebook goes beside the data, under its name; CSV says what it could not know."""
    (tmp_path / "lab.csv").write_text("person,value\n1,2\n")
    code, out, _ = run("init", tmp_path / "lab.csv", "--unit", "row", "--rho", "0.1")
    assert code == 0 and "only its header was read" in out
    assert Codebook.load(tmp_path / "lab.toml").sources["lab"].kind == "csv"


def test_init_refuses_a_row_as_header(run: Run, tmp_path: Path) -> None:
    """Nothing is written unless somebody says that it is the header."""
    (tmp_path / "lab.csv").write_text("17,Marker\n18,Other\n")
    code, out, err = run("init", tmp_path / "lab.csv", "--yes")
    assert code == 2 and "--header" in err and "Marker" not in out + err and not (tmp_path / "lab.toml").exists()
    assert run("init", tmp_path / "lab.csv", "--yes", "--header")[0] == 0
    assert "Marker" in (tmp_path / "lab.toml").read_text()


def test_init_takes_several_files(run: Run, hospital: Path, tmp_path: Path) -> None:
    """Each is a table; what relates them is proposed and left to a person, and the codebook is refused until then."""
    out_file = tmp_path / "all.toml"
    data = [hospital.parent / f"{name}.parquet" for name in ("patients", "visits", "labs")]
    said = ["--unit", "patients.patient_id", "--max-rows", "20", "--epsilon", "1", "--yes", "--out", out_file]
    code, out, _ = run("init", *data, *said)
    assert code == 0 and "no value was read" in " ".join(out.split())
    code, _, err = run("check", out_file)
    assert code == 2 and "tables.labs.columns lacks the unit column 'patient_id'" in " ".join(err.split())
    text = out_file.read_text()
    out_file.write_text(text.replace("# foreign_keys = { visit_id", "foreign_keys = { visit_id"))
    code, out, _ = run("check", out_file, "--all")
    assert code == 0 and "visit_id → visits.visit_id" in out
    code, _, err = run("init", data[0], data[0], "--out", tmp_path / "twice.toml", "--yes")
    assert code == 2 and "Two files would be the table" in err


def test_init_asks_on_a_terminal(hospital: Path, tmp_path: Path) -> None:
    """Questions are asked where somebody sits; a wrong word is asked again with a hint."""
    out_file = tmp_path / "visits.toml"
    typed = "patient\npatient_id\n20\nmany\n1.5\n\n"
    code, seen = on_terminal("init", hospital.parent / "visits.parquet", "--out", out_file, typed=typed)
    assert code == 0, seen
    assert "Who is protected?" in seen and "Did you mean 'patient_id'?" in seen and "must be a number" in seen
    book = Codebook.load(out_file)
    assert (book.unit.column, str(book.budget)) == ("patient_id", "Budget(ε = 1.5)")
    assert book.catalog().find_table("visits").limits.max_rows == 20


MANY = "SELECT ward, sex, COUNT(*) AS n, AVG(age) AS mean_age, SUM(cost) AS total_cost FROM visits GROUP BY ward, sex"


def test_a_number_is_never_cut(run: Run, hospital: Path) -> None:
    """Less room drops the bars, then the ends of intervals, then the table; every value stays whole."""
    code, out, _ = run("ask", hospital, MANY, "--epsilon", "1", "--json")
    values = [f"{row['total_cost']:,.0f}" for row in json.loads(out)["rows"]]
    for width, has in (
        (160, ("█", " … ")),
        (115, (" … ",)),
        (100, ("± ", "───")),
        (60, ("intervals:",)),
        (30, ("± ",)),
    ):
        code, out, _ = run("ask", hospital, MANY, "--epsilon", "1", width=width)
        table = out.partition("limit  ")[0]
        assert code == 0 and all(sign in table for sign in has), width
        assert ("█" in table) == (width == 160)
        assert max(map(len, table.splitlines())) <= width
        assert all(value in table for value in values)


def test_a_pipe_has_no_width(hospital: Path) -> None:
    """Where nobody said how wide it is, no line is folded, and lines across the page stay short."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "discreet.cli.main", "ask", str(hospital), MANY, "--epsilon", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603  # our own words
    lines = done.stdout.splitlines()
    assert any(re.search(r"Surgery +male .* … .* … .* … ", line) for line in lines)
    assert max(map(len, lines)) < 200


def test_an_interrupt_after_a_charge_says_what_stands(
    run: Run, hospital: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stands, the same question is free, and before a charge nothing is said of one."""
    from discreet.engines.duckdb.engine import DuckDBEngine

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "run", interrupt)
        code, out, err = run("ask", hospital, COUNT, "--epsilon", "1")
        assert (code, out) == (130, "") and "The charge stands" in err and "free" in err
        patch.setattr(DuckDBEngine, "version", interrupt)
        code, _, err = run("ask", hospital, MANY, "--epsilon", "1")
        assert code == 130 and err == "Interrupted.\n"
    assert run("ask", hospital, COUNT, "--epsilon", "1")[0] == 0
    assert len(json.loads(run("budget", hospital, "--json")[1])["charges"]) == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_gets_colour_and_lines_that_fit(hospital: Path, width: int) -> None:
    """On a terminal there is colour, no line is too long, and no word of a key is cut."""
    code, seen = on_terminal("ask", hospital, "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY ward",
                             "--epsilon", "1", width=width)  # fmt: skip
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert code == 0 and "\x1b[" in seen
    assert "Paediatrics" in plain and ("█" in plain) == (width > 60)
    assert max(len(line.rstrip()) for line in plain.replace("\r", "\n").split("\n")) <= width


def test_demo(run: Run, tmp_path: Path) -> None:
    """The tour shows what is protected, a preview, an answer, a refusal and the budget; JSON, too."""
    code, out, err = run("demo", "--folder", tmp_path / "demo")
    assert code == 0, err
    for words in ("60,000 visits of 12,000 patients", "Preview", "Cardiology", "single rows", "ε 3 at δ 1e-06", "left"):
        assert words in out
    shown: dict[str, Any] = json.loads(run("demo", "--folder", tmp_path / "demo", "--json")[1])
    assert len(shown["rows"]) == 8 and shown["refused"] == "question"
    assert {file.stem for file in (tmp_path / "demo").glob("*.parquet")} == {"visits", "patients", "labs", "wards"}


def test_statements_with_released_answers(run: Run, hospital: Path, tmp_path: Path) -> None:
    """What is inside is priced and charged; what reads public rows alone needs no price."""
    inner = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) AS n FROM visits"
    code, out, err = run("preview", hospital, f"SELECT n / 2 AS half FROM ({inner})")
    assert (code, err) == (0, "") and "released0" in out and "nothing was charged" in out
    code, out, err = run("ask", hospital, f"SELECT n / 2 AS half FROM ({inner})", "--json")
    assert (code, err) == (0, "") and set(json.loads(out)["rows"][0]) == {"half"}
    file = tmp_path / "t.csv"
    file.write_text("k,v\na,1\nb,2\n")
    for command in ("preview", "ask"):
        code, out, err = run(command, hospital, "SELECT SUM(v) AS v FROM t", "--public", f"t={file}")
        assert (code, err) == (0, "") and "nothing" in out
    code, _, err = run("ask", hospital, "SELECT COUNT(*) FROM visits")
    assert code == 2 and "Say what it may cost" in err
