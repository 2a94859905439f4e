// Completes the names of tables and columns and the words of SQL in the text of a question. The names come with the
// page, and those of SQL from colours.js; nothing is sent anywhere.
"use strict";

const MOST = 8;

// The names and words that begin with what was typed, those of the data first. After "v." only columns fit.
function findCompletions(catalog, typed, qualified) {
  const small = typed.toLowerCase();
  const names = [...Object.keys(catalog), ...Object.values(catalog).flat(), ...WORDS];
  if (names.some((name) => name.toLowerCase() === small)) return []; // it is a whole word already
  const fits = (word) => word.toLowerCase().startsWith(small);
  const columns = [...new Set(Object.values(catalog).flat())].filter(fits);
  const found = columns.map((name) => ({ text: name, kind: "column" }));
  if (!qualified) {
    found.push(...Object.keys(catalog).filter(fits).map((name) => ({ text: name, kind: "table" })));
    found.push(...FUNCTIONS.filter(fits).map((name) => ({ text: `${name}(`, kind: "function" })));
    found.push(...WORDS.filter(fits).map((name) => ({ text: name, kind: "word" })));
  }
  return found.slice(0, MOST);
}

function completeIn(box, list, catalog) {
  let found = [];
  let chosen = 0;
  let start = 0;

  function close() {
    list.hidden = true;
    list.replaceChildren();
    box.removeAttribute("aria-activedescendant");
    found = [];
  }

  // The place of the text cursor, measured on a copy of the text with the same letters.
  function findPlace() {
    const copy = document.createElement("pre");
    const here = document.createElement("span");
    here.textContent = "|";
    copy.append(box.value.slice(0, start), here);
    copy.className = "measure";
    box.parentElement.append(copy);
    const place = { left: here.offsetLeft, top: here.offsetTop + here.offsetHeight - box.scrollTop };
    copy.remove();
    return place;
  }

  function draw() {
    list.replaceChildren(...found.map((each, number) => {
      const item = document.createElement("li");
      const kind = document.createElement("small");
      kind.textContent = each.kind;
      item.append(each.text, " ", kind);
      item.id = `completion-${number}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(number === chosen));
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(number); });
      return item;
    }));
    const place = findPlace();
    list.hidden = false;
    const most = box.clientWidth - list.offsetWidth;
    list.style.left = `${Math.max(0, Math.min(place.left, most))}px`;
    list.style.top = `${place.top}px`;
    box.setAttribute("aria-activedescendant", `completion-${chosen}`);
  }

  function take(number) {
    const text = found[number].text;
    box.setRangeText(text, start, box.selectionStart, "end");
    close();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  }

  function look(asked) {
    const before = box.value.slice(0, box.selectionStart);
    const typed = /[A-Za-z_][A-Za-z_0-9]*$/.exec(before);
    start = typed ? typed.index : before.length;
    const qualified = before[start - 1] === ".";
    found = typed || asked || qualified ? findCompletions(catalog, typed ? typed[0] : "", qualified) : [];
    chosen = 0;
    if (found.length) draw(); else close();
  }

  box.addEventListener("input", () => look(false));
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); look(true); return; }
    if (!found.length || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      draw();
    } else if (event.key === "Tab" && !event.shiftKey) {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  });
}

const asked = document.getElementById("ask-form");
if (asked) {
  completeIn(document.getElementById("sql"), document.getElementById("completions"), JSON.parse(asked.dataset.catalog));
}
