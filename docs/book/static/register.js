// The page "What people say about attention": a table that filters and sorts. Without scripts it stands there whole.
document.addEventListener("DOMContentLoaded", () => {
  const register = document.getElementById("register");
  if (!register) return;
  const body = register.querySelector("tbody"), rows = [...body.rows];
  const heads = [...register.querySelectorAll("thead th")];
  const chosen = { verdict: document.getElementById("by-verdict"), lesson: document.getElementById("by-lesson"),
    list: document.getElementById("by-list") };
  const count = document.getElementById("register-count");

  function filter() {
    for (const row of rows)
      row.hidden = Object.entries(chosen).some(([name, box]) => box.value && row.dataset[name] !== box.value);
    count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} claims`;
  }

  function sort(column) {
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : up ? "ascending" : "descending"));
    const text = row => row.cells[column].textContent.trim();
    rows.sort((a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", { numeric: true }));
    body.append(...rows);
  }

  for (const box of Object.values(chosen)) box.addEventListener("change", filter);
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));
  filter();
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));  // a link to one claim opens it
  if (named && named.matches("tr")) named.querySelector("details").open = true;
});
