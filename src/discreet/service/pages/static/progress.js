// Follows a question that runs, and loads its page anew at the end.
"use strict";

const running = document.getElementById("running");
if (running) {
  const bar = document.getElementById("progress");
  const events = new EventSource(running.dataset.follow);
  events.addEventListener("progress", (event) => {
    const known = JSON.parse(event.data);
    if (bar) bar.value = known.progress; // there is none where answers are held to set times
    if (known.state === "cancelling") document.getElementById("progress-words").textContent = "It is being ended.";
  });
  for (const last of ["done", "refused"]) {
    events.addEventListener(last, () => { events.close(); setTimeout(() => location.reload(), last === "done" ? 0 : 3000); });
  }
}
