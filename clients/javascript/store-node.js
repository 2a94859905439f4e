/**
 * A person's memory in a file, for Node: several processes may share it.
 *
 *     import { report } from "./store-node.js";
 *     const bytes = report("person.json", task, answer);
 *
 * For each report, in this order: lock, read again, build the new memory aside, write it to a draft, flush it, rename it
 * over the file, flush the folder; only then is the report given out. The lock is a file that is made new ("wx"), so it
 * is held by one process at a time. A process that was killed leaves it behind; then nothing is reported until somebody
 * has looked and removed it, because a lock that is taken away from a process that still runs is no lock.
 */

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";

import { Person, TaskError } from "./discreet-local.js";

const PAUSE = 5; // milliseconds between two attempts

function flush(path, flags, text = null) {
  const handle = openSync(path, flags, 0o600);
  try {
    if (text !== null) {
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
    }
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function write(path, state) {
  flush(`${path}.part`, "w", JSON.stringify(state));
  renameSync(`${path}.part`, path);
  flush(dirname(path), "r");
}

function takeLock(lock, wait) {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let waited = 0; ; waited += PAUSE) {
    try {
      return openSync(lock, "wx", 0o600);
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      if (waited >= wait) {
        throw new TaskError(`No report was made: ${lock} is held. If no process uses it any more, remove that file.`);
      }
      Atomics.wait(sleeper, 0, 0, PAUSE);
    }
  }
}

/**
 * One report from the memory in a file, which is made where there is none. `wait` says how many milliseconds to wait for
 * other processes; the other options are those of Person.report.
 */
export function report(path, task, answer, { wait = 10_000, ...options } = {}) {
  const lock = `${path}.lock`;
  const handle = takeLock(lock, wait);
  try {
    const state = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
    const person = new Person({ state, save: (next) => write(path, next) });
    return person.report(task, answer, options);
  } finally {
    closeSync(handle);
    unlinkSync(lock);
  }
}
