"""Pages of a running server: sessions, forms, rights, and every page of each role."""

from __future__ import annotations

import html
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import discreet
from discreet.service.messages import ApiRequest, RequestRefused
from discreet.service.pages import ask_page
from discreet.service.pages.site import Site, check_origin, read_form
from discreet.service.pages.visits import PAGE_HEADERS
from discreet.service.roles import Role
from discreet.service.served_dataset import ServedDataset
from discreet.service.sessions import SessionStore
from tests.service.pages.visitors import Visitor
from tests.service.served import WARDS, Hospital, serve_hospital
from tests.service.test_server import RunningServer, create, start_server

FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class SharedServer:
    """The one server of this module, and its codebook. Every test makes tokens of its own."""

    server: RunningServer
    codebook: Path


@pytest.fixture(scope="module")
def shared(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    """Started once: a server takes seconds to start."""
    codebook = Path(shutil.copytree(files, tmp_path_factory.mktemp("site") / "hospital")) / "hospital.toml"
    with start_server(codebook) as server:
        yield SharedServer(server, codebook)


def test_the_way_of_an_analyst(shared: SharedServer) -> None:
    """Sign in, preview, ask, see, download, search; no page spends by itself, and no secret is in the log."""
    ana, ben = create(shared.codebook, "ana"), create(shared.codebook, "ben")
    server = shared.server
    visitor = Visitor(server.port)
    assert visitor.get("/").headers["Location"] == "/sign-in"
    first = visitor.sign_in(ana)
    assert "Answers look almost the same" in first.text and " % of the budget is left" in first.text
    assert "Nothing was asked yet" in visitor.get("/history").text
    form = visitor.get("/ask")
    words = {"form_key": form.form_key, "sql": WARDS, "percent": "5", "error": "", "column": "", "part": "preview"}
    shown = visitor.post("/preview", words).text
    assert "1/20 of the budget" in shown and "data-curve" in shown and "<html" not in shown
    wrong = visitor.post("/preview", {**words, "sql": WARDS.replace("ward", "wrd")}).text
    assert 'data-line="1"' in wrong and "Did you mean" in wrong and "Nothing was charged" in wrong
    by_error = visitor.post("/preview", {**words, "error": "400", "column": "n"}).text
    assert "It costs" in by_error
    for bad in ({"percent": "much"}, {"percent": "1e9"}, {"error": "3"}, {"percent": ""}):
        assert "as a number of per cent" in visitor.post("/preview", {**words, **bad}).text
    assert "Nothing was asked yet" in visitor.get("/history").text
    asked = visitor.ask(WARDS, page=form)
    assert (asked.status, asked.headers["Location"]) == (303, f"/requests/{form.request}")
    again = visitor.ask(WARDS, page=form)
    assert again.headers["Location"] == asked.headers["Location"]
    answer = visitor.get(asked.headers["Location"]).text
    assert answer.count('class="error"') == 8 and "Receipt" in answer
    rows = visitor.get(f"/downloads/{form.request}.csv")
    assert rows.text.startswith('"ward","n"') and "attachment" in rows.headers["Content-Disposition"]
    assert visitor.get(f"/downloads/{form.request}.json").headers["Content-Type"] == "application/json"
    assert visitor.get(f"/downloads/{form.request}.exe").status == 404
    assert "Already answered: free" in visitor.post("/preview", words).text
    free = visitor.ask(WARDS)
    assert free.status == 200 and "it cost nothing again" in free.text
    assert f'href="{asked.headers["Location"]}"' in free.text  # the address that stays
    history = visitor.get("/history?search=WARD").text
    assert "1 charge<" in history and f"/ask?sql={quote(WARDS, safe='')}" in history  # as it was typed
    assert "Nothing was found" in visitor.get("/history?search=nowhere").text
    other = Visitor(server.port)
    other.sign_in(ben)
    assert other.get(asked.headers["Location"]).status == 404
    assert "Nothing was asked yet" in other.get("/history").text
    for path in ("/owner", "/audit"):
        assert other.get(path).status == 403
    log = server.log.read_text()
    for secret in (ana, ben, form.request, form.form_key, visitor.cookies["discreet"], "SELECT"):
        assert secret not in log
    assert "pages/requests/{x} 200" in log


def test_sessions_end_with_their_token_and_with_their_word(served: Hospital) -> None:
    """A new name at each sign-in; signing out and revoking hold at once; a planted name opens nothing."""
    ana, store, site = served.secrets["ana"], served.dataset.tokens, make_site(served)
    visitor = Visitor(site, {"discreet": "0" * 64})
    visitor.sign_in(ana)
    first = visitor.cookies["discreet"]
    assert first != "0" * 64 and ana not in first
    visitor.sign_in(ana)
    assert visitor.cookies["discreet"] != first
    assert Visitor(site, {"discreet": first}).get("/dataset").status == 303
    page = visitor.get("/dataset")
    kept = dict(visitor.cookies)
    left = visitor.post("/sign-out", {"form_key": page.form_key})
    assert left.headers["Location"] == "/sign-in" and "Max-Age=0" in left.headers["Set-Cookie"]
    assert Visitor(site, kept).get("/dataset").status == 303
    visitor.sign_in(ana)
    form = visitor.get("/ask")
    store.revoke("ana")
    assert visitor.ask(WARDS, page=form).status == 401
    assert visitor.get("/dataset").headers["Location"] == "/sign-in"
    failed = [visitor.post("/sign-in", {"token": token}) for token in (ana, "discreet_x", "")]
    assert {(each.status, each.text) for each in failed} == {(401, failed[0].text)}


def test_pages_of_others_cannot_send_a_form(served: Hospital) -> None:
    """Neither another origin, nor none, nor a form without the key of the session."""
    ana, site = served.secrets["ana"], make_site(served)
    visitor = Visitor(site)
    visitor.sign_in(ana)
    form = visitor.get("/ask")
    words = {"form_key": form.form_key, "request": form.request, "sql": WARDS, "percent": "5"}
    for headers in (
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": ""}, {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"}, {"Origin": "http://127.0.0.1:1"},
    ):  # fmt: skip
        assert visitor.post("/ask", words, **headers).status == 403
        assert Visitor(site).post("/sign-in", {"token": ana}, **headers).status == 403
    for key in ("", "0" * 64, "é"):
        assert visitor.post("/ask", {**words, "form_key": key}).status == 403
    assert visitor.post("/ask", words, Content_Type="application/json").status == 415
    assert visitor.get("/preview").status == 404 and visitor.send("PUT", "/ask").status in (404, 405)
    assert "Nothing was asked yet" in visitor.get("/history").text


def test_headers_and_addresses_of_every_page(shared: SharedServer) -> None:
    """A strict policy on each page, nothing from elsewhere, and no style or script in a page."""
    olga = create(shared.codebook, "olga", Role.OWNER)
    server = shared.server
    visitor = Visitor(server.port)
    signed = visitor.post("/sign-in", {"token": olga})
    assert signed.headers["Set-Cookie"].endswith("; Path=/; HttpOnly; SameSite=Strict")
    visitor.ask(WARDS)
    for path in (
        "/sign-in",
        "/dataset",
        "/ask",
        "/history",
        "/owner",
        "/audit",
        "/nothing",
        "/once/x",
        "/requests/x",
    ):
        page = visitor.get(path)
        assert page.status < 500
        assert [name for name, value in PAGE_HEADERS.items() if page.headers[name] != value] == [], path
        assert page.headers["Cache-Control"] == "no-store" and page.headers["X-Frame-Options"] == "DENY"
        assert not re.search(r"https?://|//[a-z]|<style| style=| on[a-z]+=|javascript:", page.text), path
    for name in ("discreet.css", "discreet.js", "icon.svg"):
        text = visitor.get(f"/static/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert text and "http" not in text
    assert visitor.get("/static/../site.py").status == 404
    assert visitor.get("/static/site.py").status == 404


def test_the_way_of_an_owner_and_an_auditor(shared: SharedServer) -> None:
    """A token that is made on the page opens what it should, is shown once, and is revoked at once."""
    olga = create(shared.codebook, "olga", Role.OWNER)
    server = shared.server
    owner = Visitor(server.port)
    owner.sign_in(olga)
    owner.ask(WARDS)
    page = owner.get("/owner")
    assert "Who spent what" in page.text and 'class="steps"' in page.text
    key = {"form_key": page.form_key}
    made = owner.post("/owner/tokens", {**key, "name": "<b>eve</b>", "role": "auditor", "days": "5"})
    assert "<b>eve" not in made.text and "&lt;b&gt;eve" in made.text
    secret = re.findall(r"discreet_[\w-]{43}", made.text)[0]
    assert secret not in owner.get("/owner").text
    for bad in ({"role": "king"}, {"name": ""}, {"days": "many"}, {"per_query": "x"}, {"days": "0"}):
        words = {**key, "name": "zoe", "role": "analyst", **bad}
        assert owner.post("/owner/tokens", words).status in (400, 422), bad
    auditor = Visitor(server.port)
    auditor.sign_in(secret)
    audit = auditor.get("/audit")
    head = auditor.get("/audit/head").text
    assert html.escape(head.strip()) in audit.text
    number = re.findall(r'href="/receipts/(\d+)"', auditor.get("/history").text)[0]
    receipt = auditor.get(f"/receipts/{number}")
    assert receipt.status == 200 and "mechanisms" in receipt.text and "Download" not in receipt.text
    assert owner.get("/receipts/x").status == 404
    verified = auditor.post("/audit/verify", {"form_key": audit.form_key, "heads": head})
    assert "The log is whole" in verified.text and "1 heads that were kept" in verified.text
    for bad_heads in ("{", "[]", '{"ledger": 1}'):
        assert auditor.post("/audit/verify", {"form_key": audit.form_key, "heads": bad_heads}).status in (
            400,
            409,
            422,
        )
    for form in ("jsonl", "csv", "registry"):
        assert auditor.get(f"/audit/export/{form}").status == 200
    assert auditor.get("/audit/export/xml").status in (404, 409, 422, 400)
    assert 'href="/ask"' not in auditor.get("/dataset").text
    reading = auditor.get("/ask")
    assert reading.status == 403 and "for reading" in reading.text and "<textarea" not in reading.text
    words = {"form_key": audit.form_key, "request": "one", "sql": WARDS, "percent": "5"}
    assert auditor.post("/ask", words).status == 403
    assert "role of this token" in auditor.post("/preview", words).text
    identity = re.findall(r"Revoke the token ([0-9a-f]{16}) of &lt;b", owner.get("/owner").text)[0]
    assert owner.post("/owner/revoke", {**key, "id": f"{identity}/revoke"}).status == 404
    assert owner.post("/owner/revoke", {**key, "id": identity}).headers["Location"] == "/owner"
    assert auditor.get("/audit").headers["Location"] == "/sign-in"
    assert owner.post("/owner/renew", {**key, "reason": "new people"}).status == 409
    renewed = owner.post("/owner/renew", {**key, "reason": "new people", "other_people": "yes"})
    assert renewed.headers["Location"] == "/owner"


def test_a_budget_that_is_spent_is_said_before_anybody_writes(served: Hospital) -> None:
    """Nothing new is answered, what was answered is free, and the form stays as it was written."""
    ana, site = served.secrets["ana"], make_site(served)
    visitor = Visitor(site)
    visitor.sign_in(ana)
    assert "The budget is spent" not in visitor.get("/ask").text
    assert visitor.ask(WARDS, "100").status == 303
    for path in ("/ask", "/dataset"):
        assert "The budget is spent" in visitor.get(path).text
    sql = "SELECT COUNT(*) AS m FROM visits"
    refused = visitor.ask(sql, "1")
    assert refused.status == 403 and "Nothing was charged" in refused.text and sql in refused.text
    assert "it cost nothing again" in visitor.ask(WARDS, "100").text


def test_a_question_that_takes_long_is_followed_and_ended(served: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with its progress and a button; ended, it says that the charge stands; then it goes on for free."""
    monkeypatch.setattr(ask_page, "_PATIENCE", "respond-async")
    engine, go_on = served.dataset.curator._engine, threading.Event()
    run = engine.run

    def wait(*arguments: Any, watch: Any = None, **words: Any) -> Any:
        while not go_on.wait(0.01):
            watch(0.5)
        return run(*arguments, watch=watch, **words)

    monkeypatch.setattr(engine, "run", wait)
    visitor = Visitor(make_site(served))
    visitor.sign_in(served.secrets["ana"])
    form = visitor.get("/ask")
    words = {"form_key": form.form_key, "request": form.request, "sql": WARDS, "percent": "5"}
    place = visitor.post("/ask", words).headers["Location"]
    assert 'id="running"' in visitor.get(place).text and 'http-equiv="refresh"' in visitor.get(place).text
    assert visitor.post(place.replace("requests", "cancel"), {"form_key": form.form_key}).headers["Location"] == place
    served.service.threads.wait(60)
    ended = visitor.get(place).text
    assert "The question was ended" in ended and "stands" in ended
    go_on.set()
    assert visitor.ask(WARDS, page=form).headers["Location"] == place
    used = visitor.get(f"/ask?use={form.request}").text
    assert "The earlier answer is the table" in used and "&quot;earlier&quot;: [&quot;ward&quot;" in used
    sql = "SELECT v.ward, COUNT(*) AS m FROM visits v JOIN earlier e ON v.ward = e.ward GROUP BY v.ward"
    shown = visitor.post("/preview", {**words, "sql": sql, "use": form.request, "part": "preview"}).text
    assert "It costs" in shown, shown


def test_an_owner_reads_the_codebook_again_and_looks_after_failures(served: Hospital, hospital: Path) -> None:
    """The checklist, refusals and what waits are on the page; a changed codebook is in force at a press."""
    visitor = Visitor(make_site(served))
    visitor.sign_in(served.secrets["olga"])
    served.send("ana", "GET", "datasets/hospital/tokens")
    page = visitor.get("/owner")
    assert "choices are good" in page.text and "forbidden" in page.text and "A failure waits" not in page.text
    hospital.write_text(hospital.read_text().replace("bounds = [0, 110]", "bounds = [0, 120]"))
    key = {"form_key": page.form_key}
    assert visitor.post("/owner/reload", key).headers["Location"] == "/owner"
    assert "from 0 to 120" in visitor.get("/dataset").text
    assert visitor.post("/owner/amend", {**key, "reason": ""}).status == 400
    ledger = served.dataset.curator.ledger
    charge = served.ask("ana", "one")
    assert charge.status == 200
    reservation = ledger.find_request("ana", "one")
    assert reservation is not None
    ledger.fail(reservation)
    assert "A failure waits for you" in visitor.get("/owner").text
    assert visitor.post("/owner/resume", {**key, "reason": "looked"}).headers["Location"] == "/owner"
    assert "A failure waits" not in visitor.get("/owner").text


def make_site(served: Hospital, *, secure: bool = False) -> Site:
    sessions = SessionStore(served.service.datasets)
    return Site(service=served.service, sessions=sessions, secure=secure)


def test_cookies_under_tls_are_bound_to_their_host(served: Hospital) -> None:
    """The prefix and the word Secure; the plain name of loopback opens nothing there; two cookies open nothing."""
    site = make_site(served, secure=True)
    head = {"host": "x", "origin": "https://x", "content-type": FORM}
    body = f"token={served.secrets['ana']}".encode()
    made = site.answer(ApiRequest(method="POST", path="/sign-in", headers=head, body=body))
    cookie = made.headers["Set-Cookie"]
    assert cookie.startswith("__Host-discreet=") and cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
    pair = cookie.partition(";")[0]
    plain = pair.replace("__Host-", "")
    for sent, status in ((pair, 200), (plain, 303), (f"{pair}; __Host-discreet=0", 303), ("", 303)):
        assert site.answer(ApiRequest(method="GET", path="/dataset", headers={"cookie": sent})).status == status


def test_a_link_opens_one_session_of_an_owner(served: Hospital) -> None:
    """Looking at it uses nothing up; the second use opens nothing."""
    site = make_site(served, secure=False)
    code = site.sessions.make_link("hospital")
    head = {"host": "x", "origin": "http://x"}
    assert site.answer(ApiRequest(method="GET", path=f"/once/{code}")).status == 200
    made = site.answer(ApiRequest(method="POST", path=f"/once/{code}", headers=head))
    cookie = {"cookie": made.headers["Set-Cookie"].partition(";")[0]}
    assert site.answer(ApiRequest(method="GET", path="/owner", headers=cookie)).status == 200
    assert site.answer(ApiRequest(method="POST", path=f"/once/{code}", headers=head)).status == 401


def test_what_goes_wrong_in_a_page_is_one_constant_page(served: Hospital, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word of the error is shown."""
    site = make_site(served, secure=False)

    def fail(_: str) -> None:
        raise RuntimeError("private")

    monkeypatch.setattr(site.sessions, "find", fail)
    made = site.answer(ApiRequest(method="GET", path="/dataset"))
    assert made.status == 500 and b"private" not in made.body


@pytest.mark.parametrize("body", [b"a=1&a=2", b"a=%ff", b"\xff", b"&".join([b"a%d=1" % n for n in range(3000)])])
def test_forms_that_cannot_be_read_are_refused(body: bytes) -> None:
    with pytest.raises(RequestRefused):
        read_form(ApiRequest(method="POST", path="/ask", headers={"content-type": FORM}, body=body))


def test_the_check_of_origins_can_pass() -> None:
    """Behind a proxy the scheme differs and the host does not."""
    check_origin(ApiRequest(method="POST", path="/", headers={"host": "x.example", "origin": "https://x.example"}))


def test_somebody_with_two_datasets_turns_from_one_to_the_other(
    served: Hospital, hospital: Path, tmp_path: Path
) -> None:
    """With the token of each; the form must be of the session, and a wrong token leaves what is open."""
    own = shutil.ignore_patterns("hospital.[!t]*", "*.tokens")
    book = Path(shutil.copytree(hospital.parent, tmp_path / "clinic", ignore=own)) / "hospital.toml"
    book.write_text(book.read_text().replace('name = "hospital"', 'name = "clinic"'))
    clinic = served.service.datasets["clinic"] = ServedDataset(book)
    try:
        _, secret = clinic.tokens.create(name="ana", role=Role.AUDITOR)
        visitor = Visitor(make_site(served))
        page = visitor.sign_in(served.secrets["ana"])
        key = {"form_key": page.form_key}
        assert 'href="/another"' in page.text and 'value="clinic"' not in page.text
        assert visitor.post("/turn", {**key, "dataset": "clinic"}).status == 404
        assert visitor.post("/another", {"form_key": "0", "token": secret}).status == 403
        assert visitor.post("/another", {**key, "token": "discreet_nothing"}).status == 401
        before = dict(visitor.cookies)
        assert visitor.post("/another", {**key, "token": secret}).headers["Location"] == "/dataset"
        page = visitor.get("/dataset")
        assert "<h1>clinic</h1>" in page.text and 'value="hospital"' in page.text
        assert visitor.post("/turn", {"form_key": page.form_key, "dataset": "hospital"}).status == 303
        assert "<h1>hospital</h1>" in visitor.get("/dataset").text and visitor.get("/ask").status == 200
        visitor.cookies = before
        assert visitor.get("/dataset").headers["Location"] == "/sign-in"  # the earlier name opens nothing any more
    finally:
        clinic.close()


def test_releases_are_on_the_page_of_their_dataset(served: Hospital, hospital: Path) -> None:
    """Downloads keep the headers of pages."""
    site = make_site(served)
    visitor = Visitor(site)
    assert "Nothing was published" in visitor.sign_in(served.secrets["ana"]).text
    plan = {"name": "<b>", "table": "visits", "columns": ["sex"], "epsilon": 0.1, "rows": 60_000, "synthetic": False}
    discreet.publish(plan, curator=served.dataset.curator, out=hospital.with_suffix(".releases") / "one")
    page = visitor.get("/dataset").text
    (number,) = re.findall(r'href="/releases/(\d+)"', page)
    assert "&lt;b&gt;" in page and "<b>" not in page
    made = site.answer(make_get(f"/releases/{number}", visitor))
    assert (
        made.status == 200 and made.media == "application/zip" and "attachment" in made.headers["Content-Disposition"]
    )
    assert made.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert visitor.get("/releases/77").status == 404


def make_get(path: str, visitor: Visitor) -> ApiRequest:
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    return ApiRequest(method="GET", path=path, headers={"host": visitor.host, "cookie": cookie})


def test_a_question_that_is_held_to_set_times_tells_nothing_on_its_way(
    hospital: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under ``answer_after`` there is no share of the work done, and no button that ends it."""
    hospital.write_text(hospital.read_text().replace("[budget]", 'answer_after = "3s"\n[budget]', 1))
    monkeypatch.setattr(ask_page, "_PATIENCE", "respond-async")
    held = serve_hospital(hospital)
    try:
        visitor = Visitor(make_site(held))
        visitor.sign_in(held.secrets["ana"])
        form = visitor.get("/ask")
        words = {"form_key": form.form_key, "request": form.request, "sql": WARDS, "percent": "5"}
        place = visitor.post("/ask", {**words, "error": "", "column": ""}).headers["Location"]
        page = visitor.get(place).text
        assert 'id="running"' in page and "at a set time" in page
        assert "/cancel/" not in page and 'id="progress"' not in page
        held.service.threads.wait(60)
        assert visitor.get(place).text.count('class="error"') == 8
    finally:
        held.dataset.close()
