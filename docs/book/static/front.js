// The front page's path shows what one has done, as far as this browser knows: exercises passed in the browser edition,
// predictions made in the book's pages, and, where the book is served on one's own machine, the course's .progress.json.
document.addEventListener("DOMContentLoaded", async () => {
  const stops = [...document.querySelectorAll("ol.path li")];
  if (!stops.length) return;
  const known = {exercises: new Set(), predictions: new Set()};
  const learn = said => { for (const kind in known) for (const name of said?.[kind] ?? []) known[kind].add(name); };

  try { learn({predictions: JSON.parse(localStorage.getItem("attention-course-predictions") ?? "[]")}); } catch { /* kept nowhere */ }
  learn(await inTheEdition().catch(() => null));
  if (location.protocol !== "file:") learn(await fetch("progress.json").then(answer => answer.json()).catch(() => null));
  if (!known.exercises.size && !known.predictions.size) return;

  for (const stop of stops) {
    const exercises = stop.dataset.exercises.split(" ").filter(Boolean), passed = exercises.filter(name => known.exercises.has(name)).length;
    const guesses = [...known.predictions].filter(key => key.startsWith(`${stop.dataset.lesson}-`)).length;
    stop.classList.toggle("passed", exercises.length ? passed === exercises.length : guesses > 0);
    stop.classList.toggle("begun", passed + guesses > 0);
    stop.style.setProperty("--share", exercises.length ? 100 * passed / exercises.length : 100 * (guesses > 0));
    const said = [passed && passed === exercises.length ? "✓ all passed" : passed && `${passed} of ${exercises.length} passed`,
                  guesses && `${guesses} ${guesses === 1 ? "prediction" : "predictions"}`].filter(Boolean);
    stop.querySelector(".known").textContent = said.length ? `· ${said.join(" · ")}` : "";
  }
  const begun = stops.filter(stop => stop.classList.contains("begun")), last = begun.at(-1);
  const next = last && !last.classList.contains("passed") ? last : stops[stops.indexOf(last) + 1];
  const all = stops.reduce((sum, stop) => sum + stop.dataset.exercises.split(" ").filter(Boolean).length, 0);
  const told = document.getElementById("progress"), mine = stops.flatMap(stop => stop.dataset.exercises.split(" ")).filter(name => known.exercises.has(name));
  told.textContent = `You have passed ${mine.length} of ${all} exercises and made ${known.predictions.size} ` +
    `${known.predictions.size === 1 ? "prediction" : "predictions"}, as far as this page knows.`;
  told.hidden = false;
  if (!next) return;
  next.setAttribute("aria-current", "step");
  const link = document.getElementById("go-on");
  link.href = next.querySelector("a").getAttribute("href");
  link.textContent = `Go on with lesson ${next.dataset.lesson}`;
  link.hidden = false;
});

// What the browser edition keeps: a file in its own storage, which is not made here where it is not yet.
async function inTheEdition() {
  const place = new URL("run/", location.href).pathname;
  const name = (await indexedDB.databases()).map(one => one.name).find(one => one?.startsWith("JupyterLite Storage") && one.endsWith(place));
  if (!name) return null;
  const storage = await new Promise((done, failed) => {
    const asked = indexedDB.open(name);
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => failed(asked.error);
  });
  try {
    const file = await new Promise((done, failed) => {
      const asked = storage.transaction("files").objectStore("files").get(".progress.json");
      asked.onsuccess = () => done(asked.result);
      asked.onerror = () => failed(asked.error);
    });
    const said = typeof file?.content === "string" ? JSON.parse(file.content) : file?.content ?? {};
    return {exercises: Object.keys(said.exercises ?? {}), predictions: Object.keys(said.predictions ?? {})};
  } finally { storage.close(); }
}
