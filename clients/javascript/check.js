/**
 * The published vectors against the client: the same file for Node and for browsers.
 * `check(vectors)` returns how many cases passed and a line for each that did not.
 */

import * as client from "./discreet-local.js";

const { Exhausted, Person, Task, TaskError, encode, encodeLine, fromHex, lineOf, toHex } = client;

function refuses(kind, action) {
  try {
    action();
  } catch (error) {
    return error instanceof kind;
  }
  return false;
}

export function check(vectors) {
  const failures = [];
  let passed = 0;
  const expect = (holds, what) => {
    if (holds) passed += 1;
    else failures.push(what);
  };
  for (const { task: text, digest, report_bytes: length, cases } of vectors.reports) {
    const task = Task.read(text);
    expect(task.json === text && toHex(task.digest) === digest, `${task.name}: digest`);
    expect(task.reportBytes === length, `${task.name}: length`);
    cases.forEach(({ answer, random, report, line }, i) => {
      const bytes = fromHex(random);
      expect(task.randomBytes(answer) === bytes.length, `${task.name} ${i}: random bytes`);
      expect(toHex(encode(task, answer, bytes)) === report, `${task.name} ${i}: report`);
      if (line !== undefined) expect(encodeLine(task, answer, bytes) === line, `${task.name} ${i}: line`);
      expect(refuses(TaskError, () => encode(task, answer, bytes.subarray(1))), `${task.name} ${i}: too few bytes`);
      expect(encode(task, answer).length === length, `${task.name} ${i}: fresh report`);
    });
  }
  for (const { task: text, secret, steps } of vectors.memories) {
    const task = Task.read(text);
    let saved = { secret };
    steps.forEach(({ answer, random, report }, i) => {
      // A restart before every step: nothing but the saved state is carried over.
      const person = new Person({ state: saved, save: (state) => (saved = JSON.parse(JSON.stringify(state))) });
      const options = { random: fromHex(random) };
      const name = `${task.name} step ${i}`;
      if (report === null) expect(refuses(Exhausted, () => person.report(task, answer, options)), name);
      else expect(toHex(person.report(task, answer, options)) === report, name);
      expect(person.distinct(task) <= task.values, `${name}: distinct`);
    });
  }
  for (const { tasks: texts, secret, steps } of vectors.epochs) {
    const tasks = texts.map((text) => Task.read(text));
    let saved = { secret };
    steps.forEach(({ epoch, answer, random, report }, i) => {
      const task = tasks[epoch];
      const person = new Person({ state: saved, save: (state) => (saved = JSON.parse(JSON.stringify(state))) });
      const name = `${task.name} step ${i}`;
      expect(task.json === texts[epoch] && task.epoch === epoch && task.epochs === tasks.length, `${name}: task`);
      expect(toHex(person.report(task, answer, { random: fromHex(random) })) === report, name);
      expect(person.distinct(task) === 1, `${name}: distinct`);
    });
  }
  for (const { what, task } of vectors.refused) expect(refuses(TaskError, () => Task.read(task)), `refused: ${what}`);
  return { passed, failures };
}

/** Reports with real randomness, as lines: for the collector's own test. */
export function fresh(text, answers) {
  const task = Task.read(text);
  const person = task.longitudinal ? new Person() : null;
  return answers.map((answer) => (person ? lineOf(person.report(task, answer)) : encodeLine(task, answer)));
}

/** Reports of one person at the same time, from a store that several pages share: how many distinct answers come out. */
export async function shared(report, text) {
  const task = Task.read(text);
  const name = `check ${toHex(globalThis.crypto.getRandomValues(new Uint8Array(8)))}`;
  const answers = Array.from({ length: 4 * task.values }, (_, i) => i);
  const outcomes = await Promise.allSettled(answers.map((answer) => report(name, task, answer)));
  const told = answers.filter((answer) => outcomes[answer].status === "fulfilled");
  const again = await Promise.all(told.map(async (answer) => toHex(await report(name, task, answer))));
  const same = again.filter((report, i) => report === toHex(outcomes[told[i]].value));
  const refused = outcomes.filter(({ reason }) => reason instanceof Exhausted);
  return { told: told.length, refused: refused.length, again: same.length };
}
