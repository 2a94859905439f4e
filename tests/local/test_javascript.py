"""The JavaScript client against the Python one: the same bytes from the same bytes, in Node and in a browser."""

from __future__ import annotations

import http.server
import json
import random
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import ParameterError
from discreet.local.aggregate import Aggregator
from discreet.local.client import bytes_needed, encode
from discreet.local.domain import Domain
from discreet.local.estimation import Frequencies, estimate
from discreet.local.task import Task
from tests.local import javascript_vectors

CLIENT = javascript_vectors.FILE.parent
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

with_node = pytest.mark.skipif(NODE is None, reason="Node.js is not installed here")
with_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")


def node(program: str, given: object = None) -> Any:
    """What a module prints as JSON; ``client`` and ``given`` are there for it."""
    head = f"""
      import * as client from {json.dumps((CLIENT / "discreet-local.js").as_uri())};
      import {{ readFileSync }} from "node:fs";
      const given = JSON.parse(readFileSync(0, "utf8"));
      const show = (value) => process.stdout.write(JSON.stringify(value));
    """
    done = subprocess.run(  # noqa: S603  # the program is this file's own
        [str(NODE), "--input-type=module", "--eval", head + program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_published_vectors_are_what_the_python_client_gives() -> None:
    """If this fails after a change on purpose, write the file anew; every client then has to follow."""
    assert javascript_vectors.FILE.read_text(encoding="ascii") == javascript_vectors.text()


def test_the_python_client_refuses_the_same_tasks() -> None:
    for entry in javascript_vectors.refused():
        with pytest.raises(ParameterError):
            Task.read(entry["task"])


@with_node
def test_every_vector_holds_in_node() -> None:
    check = json.dumps((CLIENT / "check.js").as_uri())
    vectors = json.loads(javascript_vectors.FILE.read_text(encoding="ascii"))
    found = node(f"import {{ check }} from {check}; show(check(given));", vectors)
    assert found["failures"] == []
    assert found["passed"] > 10_000


@with_node
def test_a_vector_that_is_wrong_is_noticed() -> None:
    """Negative control: one changed digit in one report of every task fails every task."""
    check = json.dumps((CLIENT / "check.js").as_uri())
    vectors = json.loads(javascript_vectors.FILE.read_text(encoding="ascii"))
    for entry in vectors["reports"]:
        report = entry["cases"][-1]["report"]
        entry["cases"][-1]["report"] = report[:-1] + format(int(report[-1], 16) ^ 1, "x")
    found = node(f"import {{ check }} from {check}; show(check(given));", vectors)
    assert len(found["failures"]) == len(vectors["reports"])


def drawn_tasks(draw: random.Random, count: int) -> Iterator[Task]:
    """Tasks that nobody picked."""
    while count:
        size, epsilon = draw.choice([draw.randint(2, 40), draw.randint(2, 2000)]), draw.randint(1, 900) / 100
        protocol, domain = draw.choice(
            [
                *((name, size) for name in ("krr", "unary", "hadamard", "hash", "projective", "wave", "sue")),
                ("subset", min(size, 200)),
                ("hash", Domain(open=True)),
                *((name, (-draw.random(), draw.random())) for name in ("sign", "window", "hybrid", "wave")),
            ]
        )
        try:
            yield Task.for_epsilon(f"drawn {count}", domain, epsilon=epsilon, protocol=protocol)
        except ParameterError:
            continue  # an epsilon that this protocol cannot keep
        count -= 1


@with_node
def test_reports_nobody_picked_are_the_same_bytes() -> None:
    draw = random.Random(20)  # noqa: S311  # a test's own choice of cases
    cases = []
    for task in drawn_tasks(draw, 400):
        if task.domain.closed:
            answer: object = draw.randint(-1, task.domain.count)
        else:
            answer = "".join(draw.choices("aäß \U0001f9ea\u0000", k=6)) if task.domain.open else draw.uniform(-1.2, 1.2)
        given = draw.randbytes(bytes_needed(task, answer))
        report = encode(task, answer, random=given).hex()
        cases.append({"task": task.json, "answer": answer, "random": given.hex(), "report": report})
    found = node(
        """
        show(given.map(({ task, answer, random }) => {
          const read = client.Task.read(task);
          return client.toHex(client.encode(read, answer, client.fromHex(random)));
        }));
        """,
        cases,
    )
    assert found == [case["report"] for case in cases]


@with_node
def test_loose_tasks_have_the_same_digest_in_both() -> None:
    """Spaces, another order of keys, escapes, and thresholds written as numbers do not change what a task is."""
    loose = [
        '{ "parameters": {"order": 8, "keep": "13483910386265540417"}, "protocol": "hadamard", "name": "a\\u00e4\\/b",'
        ' "epsilon": "1", "epoch": 0, "domain": {"size": 4}, "discreet": "local/1" }',
        '{"discreet":"local/1","name":"small","epoch":3,"epsilon":"32","protocol":"sign","domain":{"high":"2","low":"-1"},'
        '"parameters":{"high":"18437744073709551616","low":9000000000000000}}',
        '{"discreet":"local/1","name":"u","epoch":3,"epsilon":"3","protocol":"unary","domain":{"labels":["b","a"]},'
        '"parameters":{"one":"32768","other":5000},"longitudinal":{"values":2}}',
    ]
    found = node("show(given.map((text) => [client.Task.read(text).json, client.Task.read(text).id]));", loose)
    assert found == [[Task.read(text).json, Task.read(text).id] for text in loose]


def counted(task: Task, lines: list[str]) -> Frequencies:
    collected = Aggregator(task)
    collected.add_lines(lines, batch="javascript")
    found = estimate(collected)
    assert isinstance(found, Frequencies)
    return found


@with_node
def test_a_collector_finds_what_browsers_sent() -> None:
    """End to end with real randomness, at six standard errors; the noise is there, too."""
    shares = (0.5, 0.3, 0.2, 0.0)
    for protocol in ("krr", "projective", "hadamard", "unary", "subset"):
        task = Task.for_epsilon("end to end", 4, epsilon=2, protocol=protocol)
        answers = [0] * 5000 + [1] * 3000 + [2] * 2000
        program = """
          const task = client.Task.read(given.task);
          show(given.answers.map((answer) => client.encodeLine(task, answer)));
        """
        lines = node(program, {"task": task.json, "answers": answers})
        found = counted(task, lines)
        for value, share in zip(found.values, shares):
            error = (task.protocol.unit_variance(share) / len(answers)) ** 0.5  # type: ignore[attr-defined]  # all five have it
            assert abs(value - share) < 6 * error
        assert len(set(lines[:5000])) > 1


@with_node
def test_unknown_answers_are_told_as_any_other() -> None:
    """An answer that the task does not have gives reports of the same length, spread over all values."""
    task = Task.for_epsilon("unknown", 4, epsilon=8, protocol="krr")
    program = """
      const task = client.Task.read(given);
      const answers = [undefined, null, NaN, 99, -1, 1.5, "1", {}, [], true, 10n ** 30n, Symbol("x"), () => 1];
      const seen = [0, 0, 0, 0];
      for (const answer of answers) for (let i = 0; i < 200; i++) {
        const report = client.encode(task, answer);
        if (report.length !== task.reportBytes) throw new Error("length");
        seen[report[19]] += 1;
      }
      show(seen);
    """
    seen = node(program, task.json)
    assert sum(seen) == 2600
    assert all(abs(count - 650) < 6 * (2600 * 3 / 16) ** 0.5 for count in seen)


@with_node
def test_randomness_comes_from_the_system_alone() -> None:
    """Math.random may be gone; without crypto.getRandomValues nothing is reported."""
    task = Task.for_epsilon("source", 2000, epsilon=1, protocol="unary")
    program = """
      Math.random = () => { throw new Error("Math.random was called"); };
      const task = client.Task.read(given);
      const asked = [];
      const real = globalThis.crypto.getRandomValues.bind(globalThis.crypto);
      Object.defineProperty(globalThis, "crypto", { configurable: true, value: {
        getRandomValues: (out) => { asked.push(out.length); return real(out); } } });
      client.encode(task, 3);
      new client.Person();
      Object.defineProperty(globalThis, "crypto", { configurable: true, value: undefined });
      const refused = [() => client.encode(task, 3), () => new client.Person()].map((action) => {
        try { action(); return false; } catch (error) { return error instanceof client.TaskError; }
      });
      show({ asked, refused });
    """
    assert node(program, task.json) == {"asked": [16 * 250, 32], "refused": [True, True]}


@with_node
def test_large_reports_ask_the_system_in_pieces() -> None:
    """Browsers give at most 65,536 random bytes at once; the planes of a large report are more."""
    task = Task.for_epsilon("large", 100_000, epsilon=1, protocol="unary")
    program = """
      const task = client.Task.read(given);
      const report = client.encode(task, 3).subarray(19);
      let [ones, last] = [0, 0];
      report.forEach((byte, i) => { for (let b = byte; b; b &= b - 1) { ones++; if (i >= 6250) last++; } });
      show([report.length, ones, last]);
    """
    length, ones, last = node(program, task.json)
    assert length == 12_500
    assert abs(ones - 26_894) < 6 * 141 and abs(last - 13_447) < 6 * 100


@with_node
def test_a_memory_that_cannot_be_kept_gives_no_report() -> None:
    task = Task.for_epsilon("memory", 4, epsilon=1, protocol="krr", values=1)
    program = """
      const task = client.Task.read(given);
      let keep = true;
      const person = new client.Person({ save: () => { if (!keep) throw new Error("disk full"); } });
      keep = false;
      const outcomes = [];
      const attempt = (action) => {
        try { outcomes.push(client.toHex(action()).slice(0, 6)); } catch (error) { outcomes.push(error.name); }
      };
      attempt(() => person.report(task, 1));
      keep = true;
      const other = new client.Person();
      attempt(() => other.report(task, 1));
      attempt(() => other.report(task, 2));
      attempt(() => other.report(task, 2, { whenExhausted: "repeat" }));
      attempt(() => other.report(task, 2, { whenExhausted: "maybe" }));
      attempt(() => client.encode(task, 1));
      show([outcomes, other.distinct(task), JSON.stringify(other.state).includes('"marks"')]);
    """
    outcomes, distinct, marked = node(program, task.json)
    assert outcomes == ["Error", "444c01", "Exhausted", "444c01", "TaskError", "TaskError"]
    assert distinct == 1 and marked


@with_node
def test_a_failed_save_changes_nothing_in_memory() -> None:
    """A report that was not saved is not told later either, and a save that is not done yet counts as none."""
    task = Task.for_epsilon("memory", 9, epsilon=1, protocol="krr", values=1)
    program = """
      const task = client.Task.read(given);
      let [keep, saved] = [true, null];
      const save = (state) => { if (!keep) throw new Error("disk full"); saved = state; };
      const person = new client.Person({ save });
      keep = false;
      const outcomes = [];
      const attempt = (action) => {
        try { outcomes.push(client.toHex(action()).slice(0, 6)); } catch (error) { outcomes.push(error.name); }
      };
      attempt(() => person.report(task, 1));
      attempt(() => person.report(task, 1));
      attempt(() => person.report(task, 2));
      attempt(() => person.report(task, 2, { whenExhausted: "repeat" }));
      outcomes.push(person.distinct(task));
      keep = true;
      attempt(() => person.report(task, 2));
      attempt(() => person.report(task, 1));
      outcomes.push(Object.values(saved.marks).flat().length);
      const state = new client.Person().state;
      const late = new client.Person({ state, save: async () => {} });
      attempt(() => late.report(task, 1));
      attempt(() => late.report(task, 1));
      attempt(() => new client.Person({ save: async () => {} }));
      show(outcomes);
    """
    told, failed = "444c01", "Error"
    late = ["TaskError"] * 3
    assert node(program, task.json) == [failed, failed, failed, failed, 0, told, "Exhausted", 1, *late]


STORE = """
  const { report } = await import(given.store);
  const task = client.Task.read(given.task);
  let told = 0;
  for (const answer of given.answers) {
    try { report(given.path, task, answer, given.options); told++; } catch (error) {
      if (!(error instanceof client.TaskError)) throw error;
    }
  }
  show(told);
"""


@with_node
def test_processes_on_one_file_keep_one_promise(tmp_path: Path) -> None:
    """Three processes of Node with thirty different answers each, for a task of ten: ten are told, all in the file."""
    task = Task.for_epsilon("shared", 1000, epsilon=1, protocol="krr", values=10)
    path = tmp_path / "person.json"
    given: dict[str, Any] = {"store": (CLIENT / "store-node.js").as_uri(), "task": task.json, "path": str(path)}
    asked = [given | {"answers": [*range(100 * process, 100 * process + 30)], "options": {}} for process in range(3)]
    with ThreadPoolExecutor(3) as pool:
        told = sum(pool.map(lambda each: int(node(STORE, each)), asked))
    kept = json.loads(path.read_text())
    assert told == len(kept["marks"][task.digest.hex()]) == 10
    assert path.stat().st_mode & 0o077 == 0
    assert {file.name for file in tmp_path.iterdir()} == {"person.json"}
    # A lock that somebody left behind stops reports, and says so.
    lock = tmp_path / "person.json.lock"
    lock.touch()
    one = asked[0] | {"answers": [0], "options": {"wait": 20, "whenExhausted": "repeat"}}
    assert node(STORE, one) == 0
    lock.unlink()
    assert node(STORE, one) == 1


@with_node
def test_sha256_and_hmac_are_the_standard_ones() -> None:
    """Every length around the block boundary, and the test values of FIPS 180-4 and RFC 4231."""
    program = """
      import { createHash, createHmac } from "node:crypto";
      let wrong = 0;
      for (let length = 0; length < 300; length++) {
        const bytes = Uint8Array.from({ length }, (_, i) => (i * 151 + length) & 255);
        const key = bytes.subarray(0, Math.min(64, length));
        if (client.toHex(client.sha256(bytes)) !== createHash("sha256").update(bytes).digest("hex")) wrong++;
        if (client.toHex(client.hmac(key, bytes)) !== createHmac("sha256", key).update(bytes).digest("hex")) wrong++;
      }
      const text = (value) => new TextEncoder().encode(value);
      show([wrong, client.toHex(client.sha256(text("abc"))),
        client.toHex(client.hmac(text("Jefe"), text("what do ya want for nothing?")))]);
    """
    assert node(program) == [
        0,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ]


def test_the_client_is_one_file_without_dependencies_or_floats() -> None:
    source = (CLIENT / "discreet-local.js").read_text(encoding="utf-8")
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    assert not re.search(r"\bimport\b|\brequire\b|\bfetch\b|\beval\b|Math\.random|Date\b|localStorage", code)
    assert set(re.findall(r"Math\.(\w+)", code)) == {"floor", "min", "max"}
    # The only number with a fraction rounds an answer before any noise.
    assert re.findall(r"(?<![\w.])\d+\.\d+", code) == ["0.5"]


# --- a real browser ---


class Pages(http.server.SimpleHTTPRequestHandler):
    """The client's folder, and one place that takes the result."""

    outcome: dict[str, Any]
    arrived: threading.Event
    extensions_map = {".js": "text/javascript", ".json": "application/json", ".html": "text/html"}  # noqa: RUF012  # its type is the base class's

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).outcome = json.loads(body)
        self.send_response(204)
        self.end_headers()
        type(self).arrived.set()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Say nothing."""


@pytest.fixture(scope="module")
def browsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the check page found in a browser of its own, served from this machine only."""
    arrived = threading.Event()
    pages = type("OurPages", (Pages,), {"arrived": arrived, "outcome": {}})

    def handler(*args: Any) -> http.server.BaseHTTPRequestHandler:
        made: http.server.BaseHTTPRequestHandler = pages(*args, directory=str(CLIENT))
        return made

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    profile = tmp_path_factory.mktemp("profile")
    address = f"http://127.0.0.1:{server.server_address[1]}/check.html"
    browser = subprocess.Popen(  # noqa: S603  # our own page in our own browser
        [str(CHROMIUM), *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}", address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert arrived.wait(90), "the browser did not answer"
        yield pages.outcome  # type: ignore[attr-defined]  # set just above
    finally:
        browser.terminate()
        browser.wait(30)
        server.shutdown()
        server.server_close()


@with_browser
def test_every_vector_holds_in_a_browser(browsed: dict[str, Any]) -> None:
    assert browsed["failures"] == []
    assert browsed["passed"] > 10_000
    assert "Chrom" in browsed["agent"]


@with_browser
def test_pages_on_one_database_keep_one_promise(browsed: dict[str, Any]) -> None:
    """Twelve reports at once of twelve answers, for a task of three: three are told, and they are told again."""
    assert browsed["stored"] == {"told": 3, "refused": 9, "again": 3}


@with_browser
def test_reports_of_a_browser_are_read_and_counted(browsed: dict[str, Any]) -> None:
    vectors = json.loads(javascript_vectors.FILE.read_text(encoding="ascii"))
    task = Task.read(vectors["fresh"]["task"])
    found = counted(task, browsed["lines"])
    for value, share in zip(found.values, (0.5, 0.3, 0.2, 0.0)):
        error = (task.protocol.unit_variance(share) / 3000) ** 0.5  # type: ignore[attr-defined]  # a frequency protocol
        assert abs(value - share) < 6 * error


def test_the_folder_holds_what_its_page_names() -> None:
    names = {path.name for path in Path(CLIENT).iterdir()}
    files = {"discreet-local.js", "store-node.js", "store-browser.js", "vectors.json", "check.js", "check.html"}
    assert files | {"package.json"} <= names
