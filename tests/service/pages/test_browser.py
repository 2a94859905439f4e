"""The pages in a real browser: the way of an analyst and of an owner, in both colour schemes and on a phone."""

from __future__ import annotations

import json
import os
import re
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from discreet.service.roles import Role
from tests.service.forked import fork_server, run_by_files
from tests.service.pages.browser import CHROMIUM, Tab, open_tab
from tests.service.served import WARDS
from tests.service.test_server import create, start_server

with_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
LOOKS = {"light": (False, 1200), "dark": (True, 1200), "phone": (False, 390)}

# What a screen reader and a keyboard need, and what may not stick out on a small screen.
CHECK = """(() => {
  const found = [];
  for (const box of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, meter")) {
    const named = (box.labels && box.labels.length) || box.getAttribute("aria-label") || box.textContent.trim();
    if (!named) found.push("no name: " + box.outerHTML);
  }
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push("id twice: " + id);
  for (const each of document.querySelectorAll("[aria-describedby], label[for]")) {
    const id = each.getAttribute("aria-describedby") || each.getAttribute("for");
    if (!document.getElementById(id)) found.push("points nowhere: " + each.outerHTML);
  }
  for (const svg of document.querySelectorAll("svg"))
    if (!svg.getAttribute("aria-label")) found.push("a chart without words");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) found.push("sticks out by " + over);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
      .map((each) => each <= 0.04045 ? each / 12.92 : Math.pow((each + 0.055) / 1.055, 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (box) => {
    for (; box; box = box.parentElement) {
      const colour = getComputedStyle(box).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = "p, a, small, td, th, button, summary, h1, h2, label, dt, dd, caption, li, strong, #marks span";
  for (const box of document.querySelectorAll(texts)) {
    if (!box.textContent.trim() || !box.checkVisibility() || box.closest("[aria-busy=true]")) continue;
    const [one, other] = [light(getComputedStyle(box).color), light(ground(box))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) found.push("contrast " + contrast.toFixed(1) + ": " + box.textContent.slice(0, 40));
  }
  return found;
})()"""


def find_axe() -> str:
    """The program of axe-core: of the package that brings it, or in the file that DISCREET_AXE names; "" without."""
    spec = find_spec("axe_playwright_python")
    beside = None if spec is None or spec.origin is None else Path(spec.origin).with_name("axe.min.js")
    named = os.environ.get("DISCREET_AXE")
    file = Path(named) if named else beside
    return file.read_text() if file is not None and file.exists() else ""


AXE = find_axe()


def look(tab: Tab, name: str, pictures: Path) -> None:
    """Check the page, and take its picture, in each look."""
    for word, (dark, width) in LOOKS.items():
        tab.show(dark=dark, width=width)
        assert tab.run(CHECK) == [], (name, word)
        if AXE and word != "phone":
            assert tab.check_access(AXE) == [], (name, word)
        tab.take_picture(pictures / f"{name}-{word}.png")
    tab.show(dark=False, width=1200)


def sign_in(tab: Tab, address: str, secret: str) -> None:
    tab.go(f"{address}/sign-in")
    tab.write("#token", secret)
    tab.press("main button", "location.pathname === '/dataset' && document.readyState === 'complete'")


def check_addresses(tab: Tab, port: int) -> None:
    """No complaint of the browser, and no request to anybody else."""
    assert tab.complaints == []
    assert {each.partition("/")[2].split("/")[1] for each in tab.addresses} == {f"127.0.0.1:{port}"}


@with_browser
def test_people_find_their_way(hospital: Path, tmp_path: Path) -> None:
    """Sign in, type, see the preview follow, ask, see the chart; then the owner's and the auditor's pages.

    Pictures are kept in the folder that DISCREET_PICTURES names, to be looked at.
    """
    pictures = Path(os.environ.get("DISCREET_PICTURES", tmp_path))
    ana, olga = create(hospital, "ana"), create(hospital, "olga", Role.OWNER)
    with start_server(hospital) as server, open_tab(tmp_path / "profile") as tab:
        address = f"http://127.0.0.1:{server.port}"
        tab.go(f"{address}/")
        look(tab, "sign-in", pictures)
        sign_in(tab, address, ana)
        look(tab, "dataset", pictures)
        tab.go(f"{address}/history")
        look(tab, "history-empty", pictures)
        tab.go(f"{address}/ask")
        complete(tab)
        tab.write("#sql", WARDS.replace("GROUP BY ward", "GROUP BY wrd"))
        tab.wait("document.querySelector('#marks mark')?.textContent === 'wrd'")
        look(tab, "ask-mistake", pictures)
        tab.write("#sql", WARDS)
        tab.wait("document.querySelector('#preview')?.innerText.includes('1/20 of the budget')")
        check_colours(tab)
        refuse(tab)
        drag(tab)
        look(tab, "ask", pictures)
        tab.press("#ask-button", "location.pathname.startsWith('/requests/') && !document.querySelector('#running')")
        tab.wait("document.querySelectorAll('svg .error').length === 8")
        file = tab.run("fetch(document.querySelector('main .actions a').href).then(each => each.text())")
        assert file.startswith('"ward","n"') and file.count("\n") == 9
        tab.run("document.querySelector('details.receipt').open = true")
        look(tab, "answer", pictures)
        assert tab.run("document.cookie") == ""
        sign_in_again(tab, address, olga)
        for page in ("owner", "audit", "history"):
            tab.go(f"{address}/{page}")
            tab.run("document.querySelectorAll('main details').forEach(each => each.open = true)")
            look(tab, page, pictures)
        check_addresses(tab, server.port)


def check_colours(tab: Tab) -> None:
    """Words of SQL have colours, the text behind is the text in the box, and nothing is underlined."""
    assert tab.run("document.querySelector('#marks').textContent") == f"{WARDS}\n"
    assert tab.run("document.querySelector('#marks mark')") is None
    words = "[...document.querySelectorAll('#marks .{}')].map(each => each.textContent)"
    assert tab.run(words.format("sql-word")) == ["SELECT", "AS", "FROM", "GROUP", "BY"]
    assert tab.run(words.format("sql-function")) == ["COUNT"]
    text = "SELECT 'it''s' -- no\n, 2.5e3, \"a b\", @p /* to the end"
    parts = tab.run(f"findParts({json.dumps(text)}).map(each => each.kind)")
    assert [each for each in parts if each] == ["word", "string", "comment", "number", "quoted", "parameter", "comment"]


@with_browser
def test_states_that_nobody_hopes_for_are_designed(hospital: Path, tmp_path: Path) -> None:
    """Refused, running, ended, failed, stopped, not there, for reading alone, spent: each as a page, in each look."""
    pictures = Path(os.environ.get("DISCREET_PICTURES", tmp_path))
    ana, olga, otto = (
        create(hospital, name, role)
        for name, role in (("ana", Role.ANALYST), ("olga", Role.OWNER), ("otto", Role.AUDITOR))
    )
    place = hospital.parent
    forked, tabs = fork_server(hospital, partial(run_by_files, place)), open_tab(tmp_path / "profile")
    with forked as (server, _), tabs as tab:
        address = f"http://127.0.0.1:{server.port}"
        tab.go(f"{address}/sign-in")
        tab.write("#token", "discreet_nobody")
        tab.press("main button", "document.querySelector('.problem') !== null && document.readyState === 'complete'")
        look(tab, "state-sign-in-refused", pictures)
        sign_in(tab, address, ana)
        (place / "wait").touch()
        ask(tab, address, WARDS)
        tab.wait("Number(document.querySelector('#progress')?.value) === 0.5")
        look(tab, "state-running", pictures)
        tab.press("#running button", "document.querySelector('.problem') !== null")
        look(tab, "state-ended", pictures)
        (place / "wait").unlink()
        tab.go(f"{address}/requests/nothing")
        look(tab, "state-not-there", pictures)
        ask(tab, address, "SELECT COUNT(*) AS n FROM visits", "95")
        tab.go(f"{address}/ask")
        look(tab, "state-spent", pictures)
        tab.complaints.clear()  # the browser notes that some of these pages were refusals
        sign_in_again(tab, address, otto)
        for path in ("ask", "owner", "audit", "dataset"):
            tab.go(f"{address}/{path}")
            look(tab, f"state-auditor-{path}", pictures)
        tab.complaints.clear()
        sign_in_again(tab, address, olga)
        tab.go(f"{address}/owner")
        look(tab, "state-owner-spent", pictures)
        check_addresses(tab, server.port)


@with_browser
def test_the_keyboard_is_enough(hospital: Path, tmp_path: Path) -> None:
    """Sign in, go to the form, write, move a slider, ask, read, open what is folded, sign out: without a mouse."""
    ana = create(hospital, "ana")
    with fork_server(hospital) as (server, _), open_tab(tmp_path / "profile") as tab:
        tab.go(f"http://127.0.0.1:{server.port}/")
        tab.walk_to("#token")
        tab.send("Input.insertText", text=ana)
        tab.press_key("Enter")
        tab.wait("location.pathname === '/dataset' && document.readyState === 'complete'")
        tab.walk_to("a.skip")
        tab.walk_to("nav a[href='/ask']")
        tab.press_key("Enter")
        tab.wait("location.pathname === '/ask' && document.readyState === 'complete'")
        tab.walk_to("#sql")
        tab.send("Input.insertText", text=f"{WARDS} ")  # a space: nothing is offered, and Tab goes on
        tab.wait("document.querySelector('#sliders')?.hidden === false")
        tab.walk_to("#cost-slider")
        before = tab.run("document.querySelector('#percent').value")
        tab.press_key("ArrowRight")
        assert float(tab.run("document.querySelector('#percent').value")) > float(before)
        tab.walk_to("#ask-button")
        tab.press_key("Enter")
        tab.wait("location.pathname.startsWith('/requests/') && document.querySelector('details.receipt') !== null")
        tab.walk_to("details.receipt summary")
        tab.press_key("Enter")
        assert tab.run("document.querySelector('details.receipt').open")
        tab.go(f"http://127.0.0.1:{server.port}/dataset")
        tab.walk_to(".me button")
        tab.press_key("Enter")
        tab.wait("location.pathname === '/sign-in' && document.readyState === 'complete'")


@with_browser
def test_a_failure_waits_for_a_look(hospital: Path, tmp_path: Path) -> None:
    """An analyst reads a constant sentence, the next question is refused, and the owner goes on by the page."""
    pictures = Path(os.environ.get("DISCREET_PICTURES", tmp_path))
    ana, olga = create(hospital, "ana"), create(hospital, "olga", Role.OWNER)
    place = hospital.parent
    (place / "fail").touch()
    forked, tabs = fork_server(hospital, partial(run_by_files, place)), open_tab(tmp_path / "profile")
    with forked as (server, _), tabs as tab:
        address = f"http://127.0.0.1:{server.port}"
        sign_in(tab, address, ana)
        ask(tab, address, WARDS, "5", "document.querySelector('.problem') !== null")
        look(tab, "state-failed", pictures)
        (place / "fail").unlink()
        ask(tab, address, "SELECT COUNT(*) AS n FROM visits", "5", "document.querySelector('.problem') !== null")
        look(tab, "state-stopped", pictures)
        tab.complaints.clear()
        sign_in_again(tab, address, olga)
        tab.go(f"{address}/owner")
        look(tab, "state-owner-stopped", pictures)
        tab.write("form[action='/owner/resume'] input[name=reason]", "The disk was full.")
        tab.press("form[action='/owner/resume'] button", "!document.body.innerText.includes('A failure waits')")
        ask(tab, address, "SELECT COUNT(*) AS n FROM visits")
        check_addresses(tab, server.port)


def ask(tab: Tab, address: str, sql: str, percent: str = "5", then: str = "") -> None:
    """Write a question and ask it."""
    tab.go(f"{address}/ask")
    tab.write("#sql", sql)
    tab.write("#percent", percent)
    there = "location.pathname.startsWith('/requests/') && document.readyState === 'complete'"
    tab.press("#ask-button", f"({then or there}) && !document.querySelector('#ask-button')?.textContent.includes('…')")


def complete(tab: Tab) -> None:
    """Names are offered while one types; Tab takes one, Escape closes the list."""
    tab.write("#sql", "SELECT war")
    tab.wait("document.querySelector('#completions li')?.textContent.startsWith('ward')")
    assert tab.run("document.querySelector('#sql').getAttribute('aria-activedescendant')") == "completion-0"
    tab.press_key("Tab")
    assert tab.run("document.querySelector('#sql').value") == "SELECT ward"
    assert tab.run("document.querySelector('#completions').hidden")
    tab.write("#sql", "SELECT v.a")
    tab.wait("document.querySelectorAll('#completions li').length > 0")
    tab.press_key("Escape")
    assert tab.run("document.querySelector('#completions').hidden")
    assert tab.run("document.activeElement.id") == "sql"


@with_browser
def test_a_new_owner_finds_the_way(tmp_path: Path) -> None:
    """From a data file, by the guide's link, to a codebook, a served dataset, and a token."""
    pictures = Path(os.environ.get("DISCREET_PICTURES", tmp_path))
    data = tmp_path / "data"
    data.mkdir()
    rows = "".join(f"{n % 900},{n % 90},{'north' if n % 3 else 'south'}\n" for n in range(3000))
    (data / "people.csv").write_text("person_id,age,ward\n" + rows)
    with start_server(None, "--guide", str(data), folder=tmp_path) as server, open_tab(tmp_path / "profile") as tab:
        (link,) = re.findall(r"http://\S+/once/\w+", server.announced)
        tab.go(link)
        tab.press("main button", "location.pathname === '/guide' && document.readyState === 'complete'")
        look(tab, "guide-files", pictures)
        tab.run("document.querySelector('input[type=radio]').click()")
        tab.run("document.querySelector('input[type=checkbox]').click()")
        tab.press("main button", "document.querySelector('#guide-form') !== null")
        for box, text in (("#rows", "3000"), ("#units", "900"), ("#max_rows", "4"), ("[name=low-1]", "0"),
                          ("[name=high-1]", "110"), ("[name=keys-2]", "north, south")):  # fmt: skip
            tab.write(box, text)
        tab.press("#guide-look", "document.querySelector('#meaning') !== null")
        look(tab, "guide-meaning", pictures)
        tab.press("#guide-save", "location.pathname === '/owner' && document.readyState === 'complete'")
        tab.run("document.querySelectorAll('main details').forEach(each => each.open = true)")
        tab.write("#name", "ana")
        tab.press("form[action='/owner/tokens'] button", "document.querySelector('pre.secret') !== null")
        look(tab, "owner-token", pictures)
        assert tab.run("document.querySelector('pre.secret').textContent").startswith("discreet_")
        check_addresses(tab, server.port)
    assert "bounds = [0, 110]" in (data / "people.toml").read_text()


def drag(tab: Tab) -> None:
    """Each slider moves the other, and the price follows."""
    move = "(box => {{ box.value = {}; box.dispatchEvent(new Event('input')); }})(document.querySelector('{}'))"
    before = int(tab.run("document.querySelector('#error-slider').value"))
    tab.run(move.format(900, "#cost-slider"))
    assert int(tab.run("document.querySelector('#error-slider').value")) > before
    tab.wait("document.querySelector('#preview').innerText.includes('1/2 of the budget')")
    tab.run(move.format(300, "#error-slider"))
    percent = tab.run("document.querySelector('#percent').value")
    assert 0.5 < float(percent) < 50
    assert int(tab.run("document.querySelector('#cost-slider').value")) < 900
    tab.wait("document.querySelector('#preview').getAttribute('aria-busy') === 'false'")
    tab.wait("!document.querySelector('#preview').innerText.includes('1/2 of the budget')")


def refuse(tab: Tab) -> None:
    """What the server says about a question that was asked is not covered by the next preview."""
    tab.write("#percent", "150")
    tab.wait("document.querySelector('#preview .problem') !== null")
    asked = len([each for each in tab.addresses if each.endswith("/preview")])
    tab.press("#ask-button", "location.pathname === '/ask' && document.readyState === 'complete'")
    tab.wait("document.querySelector('#preview .problem') !== null")
    time.sleep(0.5)  # longer than a preview waits for the end of typing
    assert len([each for each in tab.addresses if each.endswith("/preview")]) == asked
    assert all("422" in each for each in tab.complaints)  # the browser notes that a page was a refusal
    tab.complaints.clear()
    tab.write("#percent", "5")
    tab.wait("document.querySelector('#preview')?.innerText.includes('1/20 of the budget')")


def sign_in_again(tab: Tab, address: str, secret: str) -> None:
    tab.press("header .me button", "location.pathname === '/sign-in' && document.readyState === 'complete'")
    sign_in(tab, address, secret)
