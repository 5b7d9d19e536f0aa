// A page of the browser edition, beside JupyterLite's own scripts: the way back to the book, what to press first, and what to do
// about a cell that does not end. BOOK, which stands for the book's address in links, is from scripts/edition.py.
const RUNNING = 10;  // seconds after which a running cell is asked about
const KNOWS = "attention-course has run a cell";
const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));
const element = (tag, values, ...inside) => {
  const made = Object.assign(document.createElement(tag), values);
  made.append(...inside);
  return made;
};

// One line at the foot of the page with buttons, {words: what they do}. Returns it.
function tell(id, words, buttons = {}, kind = "") {
  const foot = document.getElementById("told") ?? document.body.appendChild(element("div", {id: "told"}));
  const line = document.getElementById(id) ?? foot.appendChild(element("div", {id}, element("span")));
  line.setAttribute("role", "status");
  line.className = kind;
  if (line.querySelector("span").textContent !== words) line.querySelector("span").textContent = words;
  if (line.dataset.buttons !== Object.keys(buttons).join()) {
    line.dataset.buttons = Object.keys(buttons).join();
    for (const old of line.querySelectorAll("button")) old.remove();
    line.append(...Object.entries(buttons).map(([name, onclick]) => element("button", {type: "button", onclick}, name)));
  }
  return line;
}
const untell = id => document.getElementById(id)?.remove();

// The page follows the book where a reader has chosen light or dark there, and else the system.
const chosen = localStorage.getItem("theme");  // the book keeps it under this name
if (chosen === "light" || chosen === "dark") {
  const system = window.matchMedia.bind(window), asks = /prefers-color-scheme:\s*(light|dark)/;
  window.matchMedia = query => asks.test(query) ? system(asks.exec(query)[1] === chosen ? "all" : "not all") : system(query);
}

if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.style.background = "#111";  // until JupyterLite is there

// Links to the book: where it stands is known only here.
const book = page => new URL(`../../${page}`, location.origin + location.pathname).href;
for (const event of ["pointerover", "focusin", "touchstart"])
  document.addEventListener(event, ({target}) => {
    const link = target.closest?.("a[href]");
    if (link?.href.startsWith(BOOK)) link.href = book(link.href.slice(BOOK.length));
  }, true);

async function furnish() {
  const lesson = new URLSearchParams(location.search).get("path")?.replace(/\.ipynb$/, "");
  while (!document.getElementById("menu-panel")) await pause(100);
  document.getElementById("menu-panel").prepend(element("a", {id: "to-the-book", href: book(`${lesson ?? "index"}.html`),
    ariaLabel: "The book", title: lesson ? "This lesson in the book" : "The book"}, element("span", {ariaHidden: "true"}, "‹ "), "The book"));
  if (!lesson) return;

  const panel = () => window.jupyterapp?.shell.currentWidget;
  while (!panel()?.context?.isReady || !panel().content.widgets.length) await pause(100);
  const notebook = panel(), {sessionContext, context, content} = notebook;
  document.addEventListener("visibilitychange", () => document.hidden && context.model.dirty && context.save());
  if (!localStorage.getItem(KNOWS)) bubble();

  let timer;
  sessionContext.statusChanged.connect((_, status) => {
    clearTimeout(timer);
    untell("running");
    if (status === "busy" && document.body.dataset.python === "ready")
      timer = setTimeout(ask, RUNNING * 1000, `A cell has been running for ${RUNNING} seconds.`);
  });
  window.jupyterapp.commands.commandExecuted.connect((_, {id}) => {
    if (id.includes("interrupt") && sessionContext.session?.kernel?.status === "busy") ask("You pressed Stop.");
  });

  function ask(why) {
    tell("running", `${why} Python cannot hear Stop in a browser: restart it? What you have written is kept.`,
      {"Restart Python": restart, "Let it run": () => untell("running")});
  }
  async function restart() {
    untell("running");
    await context.save();
    await started(() => sessionContext.restartKernel());
    for (const cell of content.widgets) if (cell.model.type === "code") {  // none of them has run in this Python
      cell.model.executionCount = null;
      cell.model.executionState = "idle";
    }
    tell("begun", "Python has begun again and knows nothing yet: run the cells before this one first.", {
      "Run them": () => untell("begun") ?? window.jupyterapp.commands.execute("notebook:run-all-above"),
      "Later": () => untell("begun")});
  }
  function bubble() {
    const first = content.widgets.find(cell => cell.model.type === "code" && !cell.model.outputs.length && !cell.inputHidden);
    const away = () => {
      localStorage.setItem(KNOWS, "yes");
      content.model.contentChanged.disconnect(ran);
      note.remove();
    };
    const ran = () => first.model.executionCount && away();
    const note = element("div", {id: "first-cell"},
      element("span", {}, "Run this cell: click into it and press ", element("kbd", {}, "Shift"), "+", element("kbd", {}, "Enter"),
        ", or press ▶ above. Then go on to the next."),
      element("button", {type: "button", onclick: away}, "Understood"));
    note.setAttribute("role", "note");
    first.node.append(note);
    content.model.contentChanged.connect(ran);
  }
}
furnish();
