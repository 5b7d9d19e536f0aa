// While Python loads into the page of a lesson: a bar that says how much, how long, and that nothing is installed.
// python.js reports what has come. BYTES, how much is to come, and BOOK are from scripts/edition.py.
const mb = bytes => Math.round(bytes / 1e6);
const bar = Object.assign(document.createElement("div"), {id: "loading-python"});
bar.setAttribute("role", "status");
bar.innerHTML = "<progress aria-label='Loading Python'></progress><span></span>";
document.head.append(Object.assign(document.createElement("style"), {textContent: `
  #loading-python { position: fixed; z-index: 9999; left: 0; right: 0; bottom: 0; padding: 10px 16px; display: flex; flex-wrap: wrap;
    gap: 4px 14px; align-items: center; background: #10425e; color: #fff; font: 15px/1.4 system-ui, sans-serif; }
  #loading-python progress { flex: 0 1 240px; height: 12px; accent-color: #ffb000; }
  #loading-python span { flex: 1 1 260px; }
  #loading-python.failed { background: #8a2b00; }`}));
document.body.append(bar);
const progress = bar.querySelector("progress");
const say = words => { bar.querySelector("span").textContent = words; };
const reports = new BroadcastChannel("loading-python");
let start, failed = false;

progress.max = BYTES;
say(`Loading Python into this page: ${mb(BYTES)} MB, about half a minute the first time. You can read on; nothing is installed.`);
reports.onmessage = ({data}) => {
  if (data.failed) {
    failed = true;
    bar.className = "failed";
    progress.remove();
    say(`Python could not be loaded: check the network and load the page again. You can read on meanwhile. (${data.failed})`);
  } else if (data.here < BYTES) {
    start ??= performance.now();
    const left = (performance.now() - start) / 1000 * (BYTES - data.here) / data.here;
    const time = data.here > BYTES / 10 ? `about ${Math.ceil(left) + 8} seconds to go` : "about half a minute the first time";
    progress.value = data.here;
    say(`Loading Python into this page: ${mb(data.here)} of ${mb(BYTES)} MB, ${time}. You can read on; nothing is installed.`);
  } else if (!failed) {
    progress.removeAttribute("value");
    say("Python is here and starts: a few seconds more. You can read on.");
  }
};

async function started() {
  const kernel = () => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel;
  while (!kernel()) await new Promise(done => setTimeout(done, 200));
  await kernel().requestExecute({code: "", silent: true, store_history: false}).done;  // answered once Python is ready
  reports.close();
  bar.remove();
  document.body.dataset.python = "ready";
}
started();

// Links to the book: where it stands is known only here.
for (const event of ["pointerover", "focusin", "touchstart"])
  document.addEventListener(event, ({target}) => {
    const link = target.closest?.("a[href]");
    if (link?.href.startsWith(BOOK)) link.href = new URL("../../" + link.href.slice(BOOK.length), location.origin + location.pathname);
  }, true);
