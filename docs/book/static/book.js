// Pages opened from a disk may not read each other, so there search shows titles without the text around the word.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// And nothing can be run in them.
if (location.protocol === "file:") document.addEventListener("click", event => {
  const link = event.target.closest("a[href*='run/notebooks/']");
  if (!link) return;
  event.preventDefault();
  const told = link.parentElement.querySelector(".told") ?? link.parentElement.appendChild(document.createElement("span"));
  told.className = "told";
  told.innerHTML = " This page was opened as a file, and lessons run only in pages that a server gives: in the course's folder, run " +
    "<code>make book ARGS=--serve</code>, and open the address that it prints.";
});

// The live page is as high as it says that it is, and as dark as this one: inside, nothing outside its frame can be reached.
// Where it is the whole page, this page's address holds its text and switches.
function tellTheme() {
  for (const frame of document.querySelectorAll("iframe.explainer")) frame.contentWindow.postMessage({theme: document.body.dataset.theme}, "*");
}
addEventListener("message", ({source, data}) => {
  const frame = [...document.querySelectorAll("iframe.explainer")].find(each => each.contentWindow === source);
  if (!frame || !data) return;
  if (data.height > 0 && frame.classList.contains("tall")) frame.style.height = `${data.height}px`;
  if (data.ready) tellTheme();
  if (!frame.hasAttribute("data-address")) return;
  if (data.ready && location.hash) source.postMessage({address: location.hash}, "*");
  else if (typeof data.address === "string") history.replaceState(null, "", `#${data.address}`);
});
new MutationObserver(tellTheme).observe(document.body, {attributeFilter: ["data-theme"]});

// A prediction: choosing an answer opens what was measured.
document.addEventListener("click", event => {
  const chosen = event.target.closest("button[data-predict]");
  if (!chosen) return;
  try {  // the front page counts them
    const kept = new Set(JSON.parse(localStorage.getItem("attention-course-predictions") ?? "[]")).add(chosen.dataset.predict);
    localStorage.setItem("attention-course-predictions", JSON.stringify([...kept]));
  } catch { /* a browser that keeps nothing */ }
  for (const button of chosen.closest("ul").querySelectorAll("button")) button.setAttribute("aria-pressed", button === chosen);
  for (const veil of document.querySelectorAll("details.veil")) if (veil.dataset.key === chosen.dataset.predict) {
    veil.open = true;
    const measured = [...veil.querySelectorAll("div")].findLast(part => part.textContent.trim().startsWith("Measured:"));
    if (!measured) continue;
    const told = measured.querySelector(".told") ?? measured.appendChild(document.createElement("span"));
    told.className = "told";
    const right = measured.textContent.includes(`Measured: ${chosen.textContent}.`);
    told.textContent = right ? " You predicted that." : ` You predicted: ${chosen.textContent}.`;
  }
});

// What is wider than its place can be moved sideways with the keyboard too.
function reachable() {
  const parts = [...document.querySelectorAll("article :is(pre, div.cell_output, div.math, .table-wrapper)")];
  const wide = parts.map(part => part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible");
  parts.forEach((part, i) => wide[i] ? part.tabIndex = 0 : part.removeAttribute("tabindex"));
}
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  reachable();
});
addEventListener("resize", reachable);
document.addEventListener("toggle", reachable, true);  // a fold

// Where a reader clicked last is the place that a report is about: the code cell there, or the one before, by the id among its classes.
document.addEventListener("pointerdown", ({target}) => {
  const cells = target.closest?.("article") && !target.closest("p.foot") ? [...document.querySelectorAll("div.cell[class*='tag_id-']")] : [];
  const cell = cells.findLast(each => each.contains(target) || each.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING);
  if (!cell) return;
  for (const link of document.querySelectorAll("a.report")) {
    const form = new URL(link.href);
    form.searchParams.set("cell", [...cell.classList].find(name => name.startsWith("tag_id-")).slice("tag_id-".length));
    link.href = form.href;
  }
});

// Both columns beside a page are called "aside": each gets a name.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
});
