"""Left copy: a program that is killed cannot tidy up, and its copy of private rows stays where others can read it.

An engine that prepares a table writes a copy into the folder of temporary files. After ``kill -9`` a plain copy stays
there, with the rights that new files have. And where a finalizer does not know its process, a forked child deletes the
copy of its parent when it ends, so that later questions are charged and fail. In discreet copies lie in folders that
nobody else may enter, the next opening removes those of dead processes, and only its maker deletes a copy.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from discreet.attacks.fiction import make_coins
from discreet.attacks.outcome import Bar, Outcome, Rate
from discreet.engines.private_folder import sweep
from discreet.exact import Flags
from discreet.late_dataclass import dataclass

# Each program makes a copy, forks a child that ends if it is told so, says whether it can still answer, and waits to be
# killed.
_START = """
import os, sys, time, weakref
from pathlib import Path
import pyarrow as pa
ill = [bool(int(sign)) for sign in sys.argv[1]]
people = pa.table({"person": list(range(len(ill))), "ill": ill})
"""
_END = """
sys.stdout.flush()
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
try:
    print(answer() is not None, flush=True)
except Exception:
    print(False, flush=True)
time.sleep(600)
"""
NAIVE = f"""{_START}
import pyarrow.parquet as pq, shutil, tempfile
folder = Path(tempfile.mkdtemp(prefix="copy-"))
folder.chmod(0o755)
pq.write_table(people, folder / "people.parquet")
weakref.finalize(people, shutil.rmtree, folder)
answer = lambda: pq.read_table(folder / "people.parquet").num_rows
{_END}"""
HERE = f"""{_START}
import discreet
curator = discreet.curate({{"people": people}}, unit="person", max_rows=1, budget=discreet.Budget(epsilon=1))
curator.prepare()
answer = lambda: curator.ask("SELECT COUNT(*) AS n FROM people WHERE ill", epsilon=1)
{_END}"""
LESSON = (
    "Whoever can look into the folder of temporary files reads the plain copy of a killed program. discreet's copies "
    "are for their owner alone, and the next curator that is opened removes them."
)


def run(*, people: int = 20) -> Outcome:
    """Guess for each person whether they are ill, as another user of the computer on which a program was killed."""
    ill = make_coins("left copies", people)
    naive, ours = _kill(NAIVE, ill), _kill(HERE, ill, fork=True)
    forked = _kill(NAIVE, ill, fork=True)  # apart, because nothing is left of it to be read
    raw, private = Rate.agreement(naive.guesses, ill), Rate.agreement(ours.guesses, ill)
    return Outcome(
        name="left-copy",
        raw=raw,
        private=private,
        lesson=LESSON,
        bars=(Bar(label="a plain copy", rate=raw), Bar(label="discreet", rate=private)),
        facts={
            "answered after a fork": f"{forked.answered} with a plain copy, {ours.answered} with discreet",
            "files left at the next opening": f"{naive.left} plain, {ours.left} of discreet",
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Killed:
    """What another user guesses after a program was killed, and what became of its copy."""

    guesses: Flags
    answered: bool
    left: int


def _kill(program: str, ill: Flags, *, fork: bool = False) -> _Killed:
    with tempfile.TemporaryDirectory() as place:
        signs = "".join(str(int(one)) for one in ill)
        command = [sys.executable, "-c", program, signs, "fork" if fork else "stay"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": place}) as process:  # noqa: S603  # the lesson's own words
            answered = process.stdout is not None and process.stdout.readline().strip() == b"True"
            process.send_signal(signal.SIGKILL)
        guesses = _read_as_another_user(Path(place), len(ill))
        sweep(place)  # what the next opening does first
        return _Killed(guesses=guesses, answered=answered, left=sum(path.is_file() for path in Path(place).rglob("*")))


def _read_as_another_user(place: Path, people: int) -> Flags:
    """The values in files that others may read, in folders that others may enter; else a guess for everybody."""
    import pyarrow.parquet as pq

    for file in sorted(path for path in place.rglob("*") if path.is_file()):
        folders = [folder for folder in file.parents if place in folder.parents]
        if file.stat().st_mode & 0o004 and all(folder.stat().st_mode & 0o001 for folder in folders):
            return np.asarray(pq.read_table(file)["ill"].to_numpy(zero_copy_only=False))
    return np.zeros(people, dtype=np.bool_)
