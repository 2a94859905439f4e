"""The local model from the shell: plan a task, encode answers, add reports up, see what they say.

    discreet local plan colour --labels red,green,blue --epsilon 1 --people 5000 --out colour.json
    discreet local encode colour.json answers.txt --out reports.jsonl        on each person's own device
    discreet local aggregate colour.json reports.jsonl --state colour.state
    discreet local estimate colour.state

Nothing heavy is imported until a command needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from discreet.cli.option_groups import leave_out, take_groups
from discreet.cli.output import OutputOptions, write_file
from discreet.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from discreet.local.aggregate import Aggregator
    from discreet.local.domain import Domain
    from discreet.local.task import Task

app = typer.Typer(
    name="local", help="Collect answers that are private before they leave the person.", no_args_is_help=True
)

TaskPath = Annotated[Path, typer.Argument(metavar="TASK", help="The task file.")]
CandidatesOption = Annotated[
    Path | None, typer.Option(help="A file with one candidate value a line, for open domains.", metavar="FILE")
]


@app.command()
@take_groups
def plan(
    name: Annotated[str, typer.Argument(help="What the task is called.")],
    *,
    epsilon: Annotated[str, typer.Option(help="The loss of one report: 1, 1/2 or ln(3).", metavar="ε")],
    people: Annotated[int, typer.Option(help="How many people are expected to answer.", min=1)],
    labels: Annotated[str | None, typer.Option(help="The values, separated by commas.")] = None,
    size: Annotated[int | None, typer.Option(help="The number of values, 0 to SIZE − 1.")] = None,
    low: Annotated[str | None, typer.Option(help="The low end of a number.")] = None,
    high: Annotated[str | None, typer.Option(help="The high end of a number.")] = None,
    open_domain: Annotated[bool, typer.Option("--open", help="Any text.")] = False,
    protocol: Annotated[str | None, typer.Option(help="A protocol by name, instead of the best one.")] = None,
    error: Annotated[str | None, typer.Option(help="Also say how many people make the error this small.")] = None,
    max_bytes: Annotated[int | None, typer.Option(help="The longest payload.", min=1)] = None,
    max_influence: Annotated[float | None, typer.Option(help="The most people one liar may outweigh.")] = None,
    additive: Annotated[bool, typer.Option("--additive", help="Reports must be vectors that can be summed.")] = False,
    epoch: Annotated[int, typer.Option(help="Which round of collection this is.", min=0)] = 0,
    remember: Annotated[int | None, typer.Option(help="Memoise answers: at most so many distinct ones.", min=1)] = None,
    epochs: Annotated[int | None, typer.Option(help="Ask in so many epochs; one answer each is told.", min=1)] = None,
    out: Annotated[Path | None, typer.Option(help="Write the task to a file.")] = None,
    output: Annotated[OutputOptions, leave_out("out")],
) -> None:
    """Compare the protocols for a question, choose one, and write its task."""
    from discreet.cli import local_results
    from discreet.local.protocol_choice import Limits, choose
    from discreet.local.task import Task

    domain, loss = _make_domain(labels, size, low, high, open_domain=open_domain), _read_loss(epsilon)
    limits = Limits(payload_bytes=max_bytes, influence=max_influence, additive=additive)
    choice = choose(domain, epsilon=loss, n=people, limits=limits)
    task = choice.task(name, epoch=epoch, values=remember, epochs=epochs)
    if protocol is not None:
        task = Task.for_epsilon(
            name, domain, epsilon=loss, protocol=protocol, epoch=epoch, values=remember, epochs=epochs
        )
    needed = None if error is None else _find_people_needed(task, error)
    if out is not None:
        write_file(out, task.json + "\n")
    output.print(local_results.make_choice(choice, task, needed, error=error, out=out, protocol=protocol))


@app.command()
def encode(
    task: TaskPath,
    answers: Annotated[
        str, typer.Argument(metavar="ANSWERS", help="A file with one answer a line; - reads stdin.")
    ] = "-",
    *,
    out: Annotated[Path | None, typer.Option(help="Where to write the reports; standard output if not said.")] = None,
    memory: Annotated[Path | None, typer.Option(help="The person's memory file, for tasks that remember.")] = None,
) -> None:
    """Turn answers into reports, one JSON line each. For people's own devices; nothing else is written."""
    from discreet.local.client import encode_many
    from discreet.local.person import Person
    from discreet.local.reports import HEADER_BYTES, write_line

    asked = _read_task(task)
    with _open_lines(answers) as lines:
        given = [_read_answer(asked, line.rstrip("\r\n")) for line in lines]
    if memory is not None:
        person = Person(path=memory)
        made: Any = (write_line(asked, person.report(asked, answer)[HEADER_BYTES:]) for answer in given)
    else:
        made = encode_many(asked, given).lines()
    text = "".join(f"{line}\n" for line in made)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_file(out, text)


@app.command()
@take_groups
def aggregate(
    task: TaskPath,
    reports: Annotated[list[Path], typer.Argument(metavar="REPORTS...", help="Files of JSON lines, or .parquet.")],
    *,
    state: Annotated[Path, typer.Option(help="The aggregate; continued when it exists.", metavar="FILE")],
    candidates: CandidatesOption = None,
    output: OutputOptions,
) -> None:
    """Add files of reports to an aggregate. A file that is in already is not counted twice."""
    from discreet.cli import local_results
    from discreet.local.aggregate import Aggregator

    asked = _read_task(task)
    if state.exists():
        total = Aggregator.load(state)
        if total.task.digest != asked.digest:
            raise UsageError(f"{state} belongs to the task {total.task.id}, not to {asked.id}.")
    else:
        total = Aggregator(asked, candidates=_read_candidates(candidates))
    added = [_add(total, path) for path in reports]
    total.save(state)
    output.print(local_results.make_aggregate(total, state, added))


@app.command()
@take_groups
def estimate(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The aggregate.")],
    *,
    level: Annotated[float, typer.Option(help="The confidence of intervals.")] = 0.95,
    candidates: CandidatesOption = None,
    output: OutputOptions,
) -> None:
    """Show what the reports say, with intervals."""
    from discreet.cli import local_results
    from discreet.local.aggregate import Aggregator
    from discreet.local.estimation import estimate as estimate_all

    if not state.exists():
        raise UsageError(f"{state} does not exist. Make it with discreet local aggregate.")
    total = Aggregator.load(state)
    found = estimate_all(total, level=level, candidates=_read_candidates(candidates))
    output.print(local_results.make_estimate(total, found))


def _read_task(path: Path) -> Task:
    from discreet.local.task import Task

    if not path.is_file():
        raise UsageError(f"{path} does not exist. Make it with discreet local plan.")
    return Task.read(path.read_bytes())


def _make_domain(
    labels: str | None, size: int | None, low: str | None, high: str | None, *, open_domain: bool
) -> Domain:
    from discreet.local.domain import Domain

    named = None if labels is None else tuple(label.strip() for label in labels.split(","))
    return Domain(labels=named, size=size, low=low, high=high, open=open_domain)


def _read_loss(text: str) -> Any:
    """A loss as it is typed: 1, 0.5, 1/2 or ln(3)."""
    from fractions import Fraction

    from discreet.exact import ln

    said = text.strip()
    try:
        if said.startswith("ln(") and said.endswith(")"):
            return ln(Fraction(said[3:-1]))
        return Fraction(said)
    except (ValueError, ZeroDivisionError):
        raise ParameterError("--epsilon", "must be a number", "Write it like 1, 0.5, 1/2 or ln(3).") from None


def _find_people_needed(task: Task, error: str) -> int:
    from discreet.local.planning import people_needed

    try:
        width = float(error)
    except ValueError:
        raise ParameterError("--error", "must be a number", "Write it like 0.01.") from None
    return people_needed(task, width)


def _read_answer(task: Task, line: str) -> object:
    """An answer from its line: a number where numbers are asked. What cannot be read is unknown, without a word."""
    if task.domain.labels is not None or task.domain.open:
        return line
    try:
        return float(line) if task.domain.numeric else int(line)
    except ValueError:
        return None


@contextmanager
def _open_lines(name: str) -> Iterator[TextIO]:
    if name == "-":
        yield typer.get_text_stream("stdin")
        return
    if not Path(name).is_file():
        raise UsageError(f"{name} does not exist.")
    with Path(name).open(encoding="utf-8") as file:
        yield file


def _read_candidates(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    if not path.is_file():
        raise UsageError(f"{path} does not exist.")
    return list(dict.fromkeys(line for line in path.read_text(encoding="utf-8").splitlines() if line))


def _add(total: Aggregator, path: Path) -> bool:
    """One file; its batch is named by its content."""
    import hashlib

    if not path.is_file():
        raise UsageError(f"{path} does not exist. Nothing of it was added.")
    with path.open("rb") as file:
        batch = hashlib.file_digest(file, "sha256").hexdigest()
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return total.add_arrow(pq.read_table(path), batch=batch)
    with path.open(encoding="utf-8", errors="replace") as lines:
        return total.add_lines(lines, batch=batch)
