// Search, light and dark, and copying code. Nothing is fetched from elsewhere: the index is a script beside this one.
"use strict";

const up = document.body.dataset.up;
const box = document.getElementById("search");
const list = document.getElementById("found");
const GREEK = { ε: "epsilon", δ: "delta", μ: "mu", ρ: "rho", σ: "sigma", γ: "gamma", α: "alpha", β: "beta" };
const MOST = 12;

function simplify(text) {
  return text.toLowerCase().replace(/[εδμρσγαβ]/g, sign => GREEK[sign]);
}

function loadSections(then) {
  if (window.sections) return then();
  const script = document.createElement("script");
  script.src = up + "static/sections.js";
  script.onload = () => {
    window.simplified = window.sections.map(([, title, heading, words]) => [title, heading, words].map(simplify));
    then();
  };
  document.head.append(script);
}

// How well a section fits: every word must begin a word of it; titles and headings count more.
function scoreSection([title, heading, words], wanted) {
  let score = 0;
  for (const word of wanted) {
    const pattern = new RegExp("(^|[^\\p{L}\\p{N}])" + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gu");
    const inTitle = pattern.test(title), inHeading = heading.match(pattern), inWords = words.match(pattern);
    if (!inTitle && !inHeading && !inWords) return 0;
    score += (inTitle ? 6 : 0) + (inHeading ? 10 : 0) + Math.min(inWords ? inWords.length : 0, 5);
  }
  return score;
}

function findSections(question) {
  const wanted = simplify(question).split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  return window.simplified
    .map((texts, number) => [scoreSection(texts, wanted), number])
    .filter(([score]) => score > 0)
    .sort((one, other) => other[0] - one[0] || one[1] - other[1])
    .slice(0, MOST)
    .map(([, number]) => window.sections[number]);
}

// The words around the first hit, with the hit marked.
function showWords(words, question) {
  const line = document.createElement("small");
  const first = question.trim().split(/\s+/)[0].toLowerCase();
  const place = words.toLowerCase().indexOf(first);
  const start = place > 50 ? words.indexOf(" ", place - 50) + 1 : 0;
  if (place < 0) line.textContent = words.slice(0, 140);
  else {
    const hit = document.createElement("mark");
    hit.textContent = words.slice(place, place + first.length);
    line.append((start ? "…" : "") + words.slice(start, place), hit, words.slice(place + first.length, place + 110));
  }
  return line;
}

function showFound() {
  const found = findSections(box.value);
  list.hidden = !box.value.trim();
  list.replaceChildren(...found.map(([address, title, heading, words]) => {
    const item = document.createElement("li"), link = document.createElement("a"), name = document.createElement("b");
    link.href = up + address;
    name.textContent = heading;
    link.append(name, heading === title ? "" : " · " + title, showWords(words, box.value));
    item.append(link);
    return item;
  }));
  if (!found.length) {
    const none = document.createElement("li");
    none.className = "none";
    none.textContent = "Nothing found. Every word you type must begin a word on the page.";
    list.append(none);
  }
}

function hideFound() {
  list.hidden = true;
}

function moveFocus(step) {
  const links = [...list.querySelectorAll("a")];
  const place = links.indexOf(document.activeElement) + step;
  if (place < 0) box.focus();
  else if (links[place]) links[place].focus();
}

box.addEventListener("input", () => loadSections(showFound));
box.addEventListener("focus", () => loadSections(() => box.value && showFound()));
document.addEventListener("click", event => event.target.closest(".search") || hideFound());
document.addEventListener("keydown", event => {
  const typing = event.target.matches("input, textarea");
  if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); }
  if (event.key === "Escape") { hideFound(); box.blur(); }
  if (list.hidden || !event.target.closest(".search")) return;
  if (event.key === "ArrowDown") { event.preventDefault(); moveFocus(1); }
  if (event.key === "ArrowUp") { event.preventDefault(); moveFocus(-1); }
  if (event.key === "Enter" && typing) { const first = list.querySelector("a"); if (first) first.click(); }
});

// Light or dark: the reader's choice, else the system's.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
});

// What a reader would type: lines after >>> and ..., or after $; other code as it is.
function takeInput(block) {
  const text = block.textContent;
  const prompts = { pycon: /^(?:>>>|\.\.\.) ?/, console: /^\$ / }[block.dataset.language];
  if (!prompts) return text;
  let taken = [], continued = false;
  for (const line of text.split("\n")) {
    if (prompts.test(line)) taken.push(line.replace(prompts, ""));
    else if (continued) taken.push(line);
    else continue;
    continued = line.endsWith("\\");
  }
  return taken.join("\n") + "\n";
}

for (const block of document.querySelectorAll("pre.code")) {
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "framed";
  button.className = "copy";
  button.type = "button";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(takeInput(block));
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}

const current = document.querySelector("nav.pages a[aria-current]");
if (current) {
  const pages = document.querySelector("nav.pages");
  pages.scrollTop = current.offsetTop - pages.clientHeight / 2;
}
