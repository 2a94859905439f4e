// The live preview of the ask page. It sends the form to our own server and shows what comes back; no price is
// computed here. Everything works without it, by the button for the preview.
"use strict";

const form = document.getElementById("ask-form");
if (form) {
  const preview = document.getElementById("preview");
  const sql = document.getElementById("sql");
  const marks = document.getElementById("marks");
  const percent = document.getElementById("percent");
  const column = document.getElementById("column");
  const error = document.getElementById("error");
  const sliders = document.getElementById("sliders");
  const costSlider = document.getElementById("cost-slider");
  const errorSlider = document.getElementById("error-slider");
  const errorOutput = document.getElementById("error-output");
  const SMALLEST = 0.001; // the share at the left end of the slider
  let curve = []; // points of share and error, from cheap to dear
  let timer = 0;
  let running = null;
  let nextText = 0;

  const clamp = (value) => Math.min(1, Math.max(0, value));
  const toPlace = (value, low, high) => Math.round(1000 * clamp(Math.log(value / low) / Math.log(high / low)));
  const fromPlace = (place, low, high) => low * Math.pow(high / low, place / 1000);

  // A number on the curve between two of its points; both axes are logarithms.
  function follow(from, to, value) {
    const points = [...curve].sort((one, other) => one[from] - other[from]);
    let before = points[0];
    for (const after of points) {
      if (value <= after[from]) {
        if (value <= before[from] || after[from] === before[from]) return before === after ? after[to] : before[to];
        const part = Math.log(value / before[from]) / Math.log(after[from] / before[from]);
        return before[to] * Math.pow(after[to] / before[to], part);
      }
      before = after;
    }
    return before[to];
  }

  function readCurve() {
    const drawn = preview.querySelector("[data-curve]");
    // An offer that is refused leaves the sliders, so that one can go back; another question has another curve.
    if (!drawn && curve.length && !preview.querySelector("[data-line]")) return moveSliders("");
    const points = drawn ? JSON.parse(drawn.dataset.curve) : [];
    const name = points.length ? Object.keys(points[0].errors)[0] : "";
    const found = points.map((point) => ({ share: point.share, error: point.errors[name] }));
    curve = found.filter((point) => point.share > 0 && point.error > 0);
    sliders.hidden = curve.length < 2;
    if (name && !column.value) column.value = name;
    if (!sliders.hidden) moveSliders(name);
  }

  function moveSliders(name) {
    const errors = curve.map((point) => point.error);
    const [low, high] = [Math.min(...errors), Math.max(...errors)];
    const wanted = Number(error.value.replace(",", "."));
    const share = error.value && wanted > 0 ? follow("error", "share", wanted) : Number(percent.value.replace(",", ".")) / 100;
    if (!(share > 0)) return;
    const size = follow("share", "error", share);
    costSlider.value = toPlace(share, SMALLEST, 1);
    costSlider.setAttribute("aria-valuetext", `${(100 * share).toPrecision(2)} per cent of the budget`);
    errorSlider.value = high > low ? 1000 - toPlace(size, low, high) : 0;
    errorOutput.value = `of ${name || column.value}: about ± ${Number(size.toPrecision(2)).toLocaleString("en")}`;
    errorSlider.setAttribute("aria-valuetext", errorOutput.value);
  }

  function setShare(share) {
    error.value = "";
    percent.value = String(Number((100 * share).toPrecision(2)));
    moveSliders("");
    schedule();
  }

  costSlider.addEventListener("input", () => setShare(fromPlace(Number(costSlider.value), SMALLEST, 1)));
  errorSlider.addEventListener("input", () => {
    const errors = curve.map((point) => point.error);
    setShare(follow("error", "share", fromPlace(1000 - Number(errorSlider.value), Math.min(...errors), Math.max(...errors))));
  });

  // The text in its colours, and the word at the place of the problem underlined.
  function markProblem() {
    drawColours(marks, sql.value, 0, 0);
    const problem = preview.querySelector("[data-line]");
    sql.toggleAttribute("aria-invalid", Boolean(problem));
    if (!problem) return;
    const lines = sql.value.split("\n");
    const line = Number(problem.dataset.line) - 1;
    const start = lines.slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + Number(problem.dataset.column) - 1;
    const word = /^(\w+|.)/su.exec(sql.value.slice(start));
    const end = start + (word ? word[0].length : 0);
    drawColours(marks, sql.value, start, end);
    marks.scrollTop = sql.scrollTop;
  }

  async function update() {
    if (running) running.abort();
    if (!sql.value.trim()) return;
    running = new AbortController();
    const own = ++nextText;
    const words = new URLSearchParams(new FormData(form));
    words.set("part", "preview");
    preview.setAttribute("aria-busy", "true");
    try {
      const response = await fetch("/preview", { method: "POST", body: words, signal: running.signal });
      const text = await response.text();
      if (own !== nextText) return;
      preview.innerHTML = text;
      readCurve();
      markProblem();
      preview.setAttribute("aria-busy", "false");
    } catch (failure) {
      if (failure.name === "AbortError") return;
      preview.textContent = "The server does not answer. Nothing was spent. Try the preview again.";
      preview.setAttribute("aria-busy", "false");
    }
  }

  function schedule() {
    clearTimeout(timer);
    timer = setTimeout(update, 300);
  }

  sql.addEventListener("input", () => { drawColours(marks, sql.value, 0, 0); schedule(); });
  sql.addEventListener("scroll", () => { marks.scrollTop = sql.scrollTop; });
  for (const field of [percent, error, column]) field.addEventListener("input", schedule);
  document.getElementById("preview-button").addEventListener("click", (event) => { event.preventDefault(); update(); });
  sql.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); update(); }
  });
  form.addEventListener("submit", () => {
    document.getElementById("ask-button").textContent = "Asking…";
  });
  marks.parentElement.classList.add("coloured"); // from now on the text behind is the one that is seen
  drawColours(marks, sql.value, 0, 0);
  // What the server said about a question that was asked stays until something is typed.
  if (preview.querySelector("[data-curve], .problem")) { readCurve(); markProblem(); } else update();
}
