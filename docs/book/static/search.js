// Search: a term of the glossary first, with what it means; solutions last, and without their code.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const isTerm = anchor => anchor?.startsWith("#term-"), results = Search._performSearch, query = Search.query, text = Search.htmlToText;
  Search.performObjectSearch = () => [];  // Sphinx would name each term once more
  Search._performSearch = (...asked) => {
    const rank = ([page, , anchor]) => isTerm(anchor) ? 2 : page.startsWith("solutions/") ? 0 : 1;
    const ordered = results(...asked).sort((one, other) => rank(one) - rank(other));  // the last is shown first
    for (const result of ordered) if (isTerm(result[2])) result[1] = `Glossary > ${result[2].slice(6).replaceAll("-", " ")}`;
    return ordered;
  };

  // The text around a word: no labels of drawings, which would run into each other, and no solution before it is asked for.
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const part of page.querySelectorAll("svg, details.solution")) part.remove();
    const meaning = isTerm(anchor) && page.querySelector(`dt${anchor} + dd`);
    return meaning ? meaning.textContent : text(page.documentElement.outerHTML, anchor);
  };

  // The heading is there at once, and where there is nothing, the nearest word that there is.
  Search.query = asked => {
    query(asked);
    Search.stopPulse();
    Search.title.textContent = "Search Results";
    Search.title.ariaLevel = 1;
    if (Search.output.children.length) return;
    const {alltitles, indexentries} = Search._index;
    const words = new Set([...Object.keys(alltitles), ...Object.keys(indexentries)].flatMap(title => title.toLowerCase().match(/\p{L}{4,}/gu) ?? []));
    const word = asked.trim().toLowerCase(), near = [...words].map(other => [distance(word, other), other]).sort(([a], [b]) => a - b)[0];
    if (!near || near[0] > Math.max(1, word.length / 4)) return;
    const link = document.createElement("a");
    link.href = `?q=${encodeURIComponent(near[1])}`;
    link.textContent = near[1];
    Search.status.after(Object.assign(document.createElement("p"), {className: "suggestion"}));
    Search.status.nextSibling.append("Did you mean ", link, "?");
  };
});

// How many letters have to be put in, taken out or changed to make one word of another (Levenshtein 1966).
function distance(word, other) {
  let row = Array.from({length: other.length + 1}, (_, j) => j);
  for (let i = 1; i <= word.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= other.length; j++)
      row.push(Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (word[i - 1] !== other[j - 1])));
  }
  return row.at(-1);
}
