// Colours the words of SQL behind the text of a question. It looks at nothing but the text, and sends nothing anywhere.
"use strict";

const WORDS = (
  "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON AND OR NOT IN IS NULL BETWEEN LIKE CASE WHEN THEN ELSE " +
  "END AS DISTINCT WITH UNION ALL CAST DESC ASC TRUE FALSE ROLLUP CUBE"
).split(" ");
const FUNCTIONS = "COUNT SUM AVG MEDIAN QUANTILE MIN MAX VARIANCE STDDEV COVAR_SAMP CORR RATIO BIN ROUND".split(" ");
// Words that are too rare to be offered while one types.
const RARE_WORDS = (
  "INNER RIGHT FULL OUTER CROSS USING EXISTS EXCEPT INTERSECT OVER PARTITION ROWS RANGE UNBOUNDED PRECEDING FOLLOWING " +
  "CURRENT ROW FILTER WITHIN QUALIFY VALUES DATE TIMESTAMP INTERVAL EXTRACT OFFSET NULLS FIRST LAST GROUPING SETS " +
  "ESCAPE ILIKE ANY SOME RECURSIVE LATERAL UNNEST OPTIONS DIFFERENTIAL_PRIVACY WINDOW"
).split(" ");
const KNOWN_WORDS = new Set([...WORDS, ...RARE_WORDS]);

// A comment, a text, a name in quotes, a number, a parameter, a word with what follows it; all else is plain.
const PARTS = new RegExp([
  /(?<comment>--[^\n]*|\/\*[^]*?(?:\*\/|$))/,
  /(?<string>'(?:[^']|'')*(?:'|$))/,
  /(?<quoted>"[^"]*(?:"|$)|`[^`]*(?:`|$))/,
  /(?<number>\b\d[\d.]*(?:[eE][+-]?\d+)?)/,
  /(?<parameter>@\w+)/,
  /(?<word>[A-Za-z_]\w*)(?=(?<call>\s*\()?)/,
].map((each) => each.source).join("|"), "g");

// The kind of a part, which is its class in the style sheet.
function nameKind(groups) {
  if (!groups.word) return Object.keys(groups).find((name) => groups[name] !== undefined);
  if (KNOWN_WORDS.has(groups.word.toUpperCase())) return "word";
  return groups.call === undefined ? "" : "function";
}

// Parts of a text with their kinds, one after the other; together they are the text.
function findParts(text) {
  const parts = [];
  let place = 0;
  for (const found of text.matchAll(PARTS)) {
    const kind = nameKind(found.groups);
    if (!kind) continue;
    if (found.index > place) parts.push({ text: text.slice(place, found.index), kind: "" });
    parts.push({ text: found[0], kind });
    place = found.index + found[0].length;
  }
  parts.push({ text: text.slice(place), kind: "" });
  return parts;
}

// Draws the text in colours; what lies between two places is underlined as a mistake.
function drawColours(box, text, start, end) {
  const drawn = [];
  let place = 0;
  for (const part of findParts(text)) {
    const ends = [0, start - place, end - place, part.text.length];
    ends.forEach((each, number) => { ends[number] = Math.min(Math.max(each, 0), part.text.length); });
    for (let number = 0; number < 3; number++) {
      const said = part.text.slice(ends[number], ends[number + 1]);
      if (!said) continue;
      const piece = document.createElement(number === 1 ? "mark" : "span");
      piece.className = part.kind && `sql-${part.kind}`;
      piece.textContent = said;
      drawn.push(piece);
    }
    place += part.text.length;
  }
  if (start === end && start >= text.length && start > 0) {
    const piece = document.createElement("mark");
    piece.textContent = " "; // the mistake is that something is missing
    drawn.push(piece);
  }
  drawn.push("\n"); // a last line that is empty has its height, too
  box.replaceChildren(...drawn);
}
