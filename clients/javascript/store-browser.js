/**
 * A person's memory in the browser's own database: several pages, tabs and workers of one site may share it.
 *
 *     import { report } from "./store-browser.js";
 *     await fetch("/reports", { method: "POST", body: await report("me", task, answer) });
 *
 * Each report is one IndexedDB transaction for reading and writing: it reads the memory, builds the new one aside and
 * writes it. Browsers run such transactions on one store one after the other, in all pages of a site. The report is
 * given out when the transaction is complete, which with durability "strict" means that it is on the disk. Where it
 * fails, the memory stays as it was and there is no report.
 */

import { Person } from "./discreet-local.js";

const DATABASE = "discreet-local";
const STORE = "persons";

function open() {
  return new Promise((resolve, reject) => {
    const request = globalThis.indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function run(database, name, task, answer, options) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, "readwrite", { durability: "strict" });
    const store = transaction.objectStore(STORE);
    let made;
    let failure = null;
    transaction.oncomplete = () => resolve(made);
    transaction.onabort = () => reject(failure ?? transaction.error);
    const request = store.get(name);
    request.onsuccess = () => {
      try {
        const person = new Person({ state: request.result ?? null, save: (state) => void store.put(state, name) });
        made = person.report(task, answer, options);
      } catch (error) {
        failure = error;
        transaction.abort();
      }
    };
  });
}

/** One report of the person with this name, who is made where there is none; options as for Person.report. */
export async function report(name, task, answer, options = {}) {
  const database = await open();
  try {
    return await run(database, name, task, answer, options);
  } finally {
    database.close();
  }
}
