// The page "What people say about attention": cards to guess, and a table that filters and sorts. Without scripts both stand there whole.
document.addEventListener("DOMContentLoaded", () => {
  const register = document.getElementById("register");
  if (!register) return;
  const rows = [...register.querySelectorAll("tbody tr")];

  // The cards: a guess, then the stamp. What is said is read out, the keyboard stays where it is.
  const cards = [...document.querySelectorAll("section.card")], end = document.querySelector(".card.end");
  const answers = {
    "holds": guess => guess === "holds" ? "You are right." : "The measurement says otherwise.",
    "does not hold": guess => guess === "holds" ? "The measurement says otherwise." : "You are right.",
    "not settled": () => "Nobody can say yet: that takes more cases.",
  };
  end.hidden = false;
  for (const card of cards) card.querySelector(".guess").addEventListener("click", ({target}) => {
    if (!target.matches("button")) return;
    for (const button of card.querySelectorAll(".guess button")) button.setAttribute("aria-pressed", button === target);
    const {kind, verdict} = card.dataset;
    card.querySelector("details").open = true;
    card.classList.add("guessed");
    card.querySelector(".told").textContent = `You say: ${target.textContent.toLowerCase()}. The verdict: ${verdict}. ` +
      `${answers[kind]?.(target.value) ?? "It depends, so there is something in either answer."}`;
    if (cards.every(one => one.classList.contains("guessed"))) {
      const plainly = cards.filter(one => one.dataset.kind === "holds").length;
      end.textContent = `Of these ${cards.length} sentences ${["none holds", "one holds"][plainly] ?? `${plainly} hold`} just as people say ` +
        `${plainly === 1 ? "it" : "them"}. Of all ${rows.length} in the register, ${register.dataset.counted}.`;
    }
  });

  // The table. What is chosen stands in the address, so that it can be sent to somebody.
  const heads = [...register.querySelectorAll("thead th")], names = heads.map(head => head.textContent);
  const chosen = {verdict: document.getElementById("by-verdict"), lesson: document.getElementById("by-lesson"),
                  word: document.getElementById("by-word")};
  const count = document.getElementById("register-count");
  let order = "";

  function filter() {
    const word = chosen.word.value.trim().toLowerCase();
    for (const row of rows)
      row.hidden = ["verdict", "lesson"].some(name => chosen[name].value && row.dataset[name] !== chosen[name].value)
        || !row.textContent.toLowerCase().includes(word);
    const left = rows.filter(row => !row.hidden).length;
    count.textContent = `${left} of ${rows.length} claims${left ? "" : ": choose less, or another word"}`;
  }

  function sort() {
    const down = order.startsWith("-"), column = names.indexOf(order.replace("-", "")) % 5;
    heads.forEach((head, i) => head.setAttribute("aria-sort", column < 0 || i % 5 !== column ? "none" : down ? "descending" : "ascending"));
    if (column < 0) return;
    const text = row => row.cells[column].textContent.trim();
    for (const row of [...rows].sort((a, b) => (down ? -1 : 1) * text(a).localeCompare(text(b), "en", {numeric: true})))
      row.parentElement.append(row);
  }

  function keep() {  // a page from a disk may have no say in its address
    const said = new URLSearchParams(Object.entries(chosen).map(([name, box]) => [name, box.value]).filter(([, value]) => value));
    if (order) said.set("sort", order);
    try { history.replaceState(null, "", `${location.pathname}${`${said}` && `?${said}`}${location.hash}`); } catch { /* it stays */ }
  }

  function named() {  // a link to one claim opens it
    const row = rows.find(one => one.id && one.id === decodeURIComponent(location.hash.slice(1)));
    if (!row) return;
    if (row.hidden) { for (const box of Object.values(chosen)) box.value = ""; filter(); keep(); }
    row.querySelector("details").open = true;
    row.scrollIntoView();
  }

  const asked = new URLSearchParams(location.search);
  for (const [name, box] of Object.entries(chosen)) {
    box.value = asked.get(name) ?? "";
    if (box.selectedIndex < 0) box.value = "";
    box.addEventListener("input", () => { filter(); keep(); });
  }
  order = names.includes((asked.get("sort") ?? "").replace("-", "")) ? asked.get("sort") : "";
  heads.forEach(head => head.querySelector("button").addEventListener("click", () => {
    order = head.getAttribute("aria-sort") === "ascending" ? `-${head.textContent}` : head.textContent;
    sort(); keep();
  }));
  filter();
  sort();
  named();
  addEventListener("hashchange", named);
});
