// While Python loads into the page of a lesson: a bar that says how much, how long, and that nothing is installed; and when
// nothing comes any more, or it failed, one sentence and a button. python.js reports what has come. MEGABYTES, all that a lesson
// loads, and BYTES, the part of it that python.js reports, are from scripts/edition.py; `tell` is from page.js.
const SILENCE = 20, START = 60;  // seconds without a sign of life: while files come, and while Python starts
const TOOK = "attention-course python took";  // how many seconds the last start took in this browser, with Python kept in it
const seconds = number => `${Math.max(1, Math.round(number))} second${Math.round(number) > 1 ? "s" : ""}`;
const reports = new BroadcastChannel("loading-python");

function loading() {
  const begun = performance.now(), took = Number(localStorage.getItem(TOOK));
  let heard = false, here = 0, silent = 0, failed = "";

  function say() {
    const whole = here >= BYTES, [words, button] =
      failed ? [`Python could not be loaded: check the network. (${failed})`, true]
      : silent >= (whole ? START : SILENCE) ? [whole ? `Python has come, and has not started for ${START} seconds.`
          : `Nothing has come for ${SILENCE} seconds: the network may be slow, or down.`, true]
      : whole ? ["Python is here and starts: a few seconds more. You can read on."]
      : heard === "kept" ? [`Python is kept in this browser since your last visit, and starts${took ? ` in about ${seconds(took)}` : ""}.`]
      : heard ? [`Loading Python into this page: ${Math.round(MEGABYTES - (BYTES - here) / 1e6)} of ${MEGABYTES} MB, ${left()}. ` +
          "You can read on; nothing is installed."]
      : [took ? `Python is looked for in this browser, where it last started in ${seconds(took)}. You can read on.`
          : `Loading Python into this page: ${MEGABYTES} MB, about half a minute the first time. You can read on; nothing is installed.`];
    const bar = tell("loading-python", button ? words + " What you have written is kept." : words,
      button ? {"Load again": again} : {}, button ? "failed" : "");
    const progress = bar.querySelector("progress") ?? Object.assign(document.createElement("progress"), {max: BYTES});
    progress.setAttribute("aria-label", "Loading Python");
    if (here && !whole) progress.value = here; else progress.removeAttribute("value");
    button ? progress.remove() : bar.prepend(progress);
  }
  function left() {
    const passed = (performance.now() - begun) / 1000;
    return here > BYTES / 10 ? `about ${seconds(passed * (BYTES - here) / here + 8)} to go` : "about half a minute the first time";
  }
  async function again() {
    await window.jupyterapp?.shell.currentWidget?.context?.save().catch(() => {});
    location.reload();
  }
  reports.onmessage = ({data}) => {
    silent = 0;
    failed = data.failed ?? failed;
    heard = data.fresh ? "fresh" : heard || "kept";
    here = data.here ?? here;
    say();
  };
  const files = new PerformanceObserver(() => { silent = 0; });  // the page's own files are signs of life as well
  files.observe({type: "resource"});
  const broken = ({target}) => {
    if (target.tagName !== "SCRIPT" || failed) return;
    failed = new URL(target.src).pathname.split("/").pop();
    say();
  };
  addEventListener("error", broken, true);
  const clock = setInterval(() => { silent++; if ([SILENCE, START].includes(silent)) say(); }, 1000);
  say();
  return () => {
    clearInterval(clock), files.disconnect(), removeEventListener("error", broken, true);
    reports.onmessage = null;
    if (failed) return "failed";
    if (heard === "kept") localStorage.setItem(TOOK, (performance.now() - begun) / 1000);
    untell("loading-python");
    return "ready";
  };
}

// Shows the bar until Python answers; ``begin``: what makes it start again.
async function started(begin) {
  document.body.dataset.python = "loading";
  const done = loading();
  await begin?.();
  const kernel = () => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  while (!kernel()) await pause(200);
  await kernel().requestExecute({code: "", silent: true, store_history: false}).done;  // answered once Python is ready
  document.body.dataset.python = done();
}
started();
