// The page: a sentence and its arcs, what comes next, the heads as maps, dares, switches, the address.
// ---------------------------------------------------------------- drawing
// The theme is what the page around it says, else what the address says, else the system's.
const asked = new URLSearchParams(location.search), system = matchMedia("(prefers-color-scheme: dark)");
let theme = asked.get("theme");
function paint() { document.documentElement.dataset.theme = ["light", "dark"].includes(theme) ? theme : system.matches ? "dark" : "light"; }
system.addEventListener("change", paint); paint();
const $ = id => document.getElementById(id);
const fit = (node, set) => { for (const [name, value] of Object.entries(set))
  name.startsWith("--") ? node.style.setProperty(name, value) : name.startsWith("on") || name in node && !name.startsWith("aria") ? node[name] = value : node.setAttribute(name, value);
  return node; };
const make = (tag, set = {}, ...inside) => { const node = fit(document.createElement(tag), set); node.append(...inside); return node; };
const svg = (tag, set = {}, ...inside) => { const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(set)) name.startsWith("--") ? node.style.setProperty(name, value) : name.startsWith("on") ? node[name] = value : node.setAttribute(name, value);
  node.append(...inside); return node; };
// As many children as there are items, of which those that are there stay: what has the focus keeps it.
function keep(box, items, create, update) {
  while (box.children.length > items.length) {
    const last = box.lastElementChild, held = last.contains(document.activeElement);
    last.remove();
    if (held) ((box.lastElementChild || box).querySelector("button") || box.lastElementChild || $("text")).focus();
  }
  items.forEach((item, i) => { const node = box.children[i] || box.appendChild(create(item, i)); update(node, item, i); });
}
const still = matchMedia("(prefers-reduced-motion: reduce)"), small = () => document.body.clientWidth < 640;
const compact = asked.has("compact") || document.documentElement.dataset.form === "compact";
const number = x => x.toFixed(2).replace(/^-(0\.0+)$/, "$1"), three = x => x.toFixed(3);
const nameOf = (l, h) => `head (${l}, ${h})`, quoted = t => `“${shown(t)}”`, colour = (l, h) => `var(--h${l}${h})`;
// ---------------------------------------------------------------- what the page knows
const facts = JSON.parse($("facts").textContent), models = {};
const THANKS = "anna tells ben that the kings near the cabinets love the doors and ben thanks";
const SHORT = "anna tells ben that the kings love the doors and ben thanks";
const FARMERS = "the farmers and the workers of our";
const EXAMPLES = {
  grammar: {"who thanks whom": THANKS, "the keys to …": "the keys to the cabinet", "she bears …": "she bears the", "they watch …": "they watch the",
    "far away": "the dog near the cabinets behind the kings with the letters"},
  text: {"the farmers …": FARMERS, "the cat …": "The cat sat on the mat because it", "she was late …": "my girlfriend was late, so she",
    "in the year …": "in the fiscal year ending june 30, the receipts of the", "мир, peace": "мир, Friede, peace: all the nations of the"}};
let model, result, ids = [1], p = [], exact = null;
const has = {model: "grammar", text: "", place: 0, off: new Set(), layersOff: new Set(), mask: true, scale: true, heat: 1, zoom: [], scene: 0};
let followed = null, typing = false, chosen = -1, fresh = true, done = new Set(), writing = null;
const called = name => name === "." ? "the full stop" : name === "," ? "the comma" : name;
const sizes = () => model.about.settings, longest = () => sizes().max_length - 1, shown = t => model.name(ids[t]);
const used = (l, h) => !has.off.has(`${l},${h}`) && !has.layersOff.has(l);
const headsOf = () => result.layers.flatMap(({heads}, l) => heads.map((head, h) => ({l, h, ...head})));
const likeliest = shares => shares.reduce((best, share, id) => model.sayable(id) && (best < 0 || share > shares[best]) ? id : best, -1);

async function load(kind) {  // the text's model is unpacked when it is first wanted
  if (!models[kind]) models[kind] = kind === "text" ? textModel(await unpack($("gpt").textContent))
    : grammarModel(await unpack(facts.weights), await unpack(facts.grammar), facts.shares);
}
function carried(kind) {  // the sentence that is there, unless it is only the other model's example or has words that the grammar lacks
  const example = Object.values(EXAMPLES[model.kind]).includes(has.text) || !has.text.trim();
  const unknown = kind === "grammar" && wordsOf(has.text).some(word => models.grammar.words.indexOf(word) < 3);
  return example || unknown ? Object.values(EXAMPLES[kind])[0] : has.text;
}
async function choose(kind, text = has.text) {
  hush(); pause();
  await load(kind);
  asNew();
  change({model: kind, text, zoom: []});
}
function change(set, keepPlace = false) {
  const length = ids.length, before = model;
  Object.assign(has, set);
  model = models[has.model];
  if ("text" in set) {
    ids = model.ids(has.text).slice(0, longest() + 1);
    if (!keepPlace) has.place = ids.length - 1;
    if (document.activeElement !== $("text") || $("text").value.trim() !== has.text.trim()) $("text").value = has.text;
  }
  has.place = Math.min(Math.max(0, has.place), ids.length - 1);
  const [l, h, k] = has.zoom;
  if (k !== undefined && (k >= ids.length || has.mask && k > has.place)) has.zoom = [l, h];
  fresh = ids.length !== length || "place" in set || "text" in set || fresh;
  result = run(model, ids, has);
  p = softmax(readOff(model, result.streams.at(-1)[has.place]).map(z => z / has.heat));
  exact = model.truth(ids.slice(0, has.place + 1));
  followed = null;
  if (model !== before) drawModel();
  draw();
}
function draw() {
  say(); drawWords(); drawNext();
  if (compact) return;
  drawMaps(); drawInside(); drawFilm(); drawDares(); drawSwitches(); saveAddress();
}
function drawModel() {  // what differs between the models and not between the sentences
  const text = model.kind === "text", {n_layers: L, n_heads: H} = sizes(), {bits, learned, weights} = model.about;
  document.documentElement.classList.toggle("text", text);
  $("about").textContent = text
    ? `A small language model that guesses what comes next. It has read one thing, what presidents of the United States told Congress from 1861 to 1944, and goes on in that voice whatever you write. Sixteen small readers, called heads, look back at what is written; the coloured lines show where.`
    : `A tiny language model that guesses the next word. Eight small readers, called heads, look back at earlier words; the coloured lines show where. It knows 74 words, so write with those or choose real text.`;
  for (const radio of $("models").querySelectorAll("input")) radio.checked = radio.value === model.kind;
  $("ask").textContent = text ? "Write anything" : "Write with its words";
  $("known").hidden = text; $("limits").hidden = !text; $("other").hidden = text;
  if (text) $("limits").querySelector("div").replaceChildren(...[
    `It is a GPT of ${L} layers of ${H} heads with ${(weights / 1e6).toFixed(1)} million parameters, made of the course's own code. That is little: it spells most words rightly, keeps to its subject for a line, and when it writes on it invents words.`,
    `Its words come from ${(learned / 1e6).toFixed(1)} million bytes of public-domain speech (data/addresses.txt.xz), read in small letters, so yours are read in small letters too. It has never read of a cat, a girlfriend or a television: what it says about them is a president's habit of speech, not knowledge.`,
    `A text is cut into tokens as in lesson 15: first into bytes, of which every script is made, and then ${model.about.merges.length.toLocaleString("en")} pairs are merged that were frequent in the addresses. Their words are one token or two; a foreign word falls into syllables, and 我 into three bytes. Pieces of one word touch each other in the picture. It reads at most ${longest()} tokens.`,
    `On later addresses (1945 to 1950) it needs ${bits[0].toFixed(2)} bits a byte, where gzip needs 2.4. Its weights are kept in 8 bits, with one scale for each row, and what that costs is hardly to be measured: ${bits[0].toFixed(4)} bits before and ${bits[1].toFixed(4)} after. With those weights this page computes what PyTorch computes, to within 0.00002 of each score; a test compares them on two hundred random texts.`,
  ].map(textContent => make("p", {textContent})));
  $("examples").replaceChildren(make("span", {className: "soft", textContent: "or try"}), ...Object.entries(EXAMPLES[model.kind])
    .map(([name, text]) => make("button", {textContent: name, onclick: () => { hush(); change({text}); }})));
  $("layers").replaceChildren(...Array.from({length: L}, (_, l) => make("label", {}, make("input", {type: "checkbox", id: `layer${l}`,
    onchange: event => { const layersOff = new Set(has.layersOff); event.target.checked ? layersOff.delete(l) : layersOff.add(l); change({layersOff}); }}), ` layer ${l}`)));
  $("h-heads").textContent = L * H === 16 ? "Sixteen heads" : "Eight heads";
}
// ---------------------------------------------------------------- the grammar's words
function begun(text) {  // the word that is being written, and what it may become
  const prefix = model.kind === "grammar" && /[\p{L}\p{M}]$/u.test(text) ? wordsOf(text).at(-1) || "" : "";
  return {prefix, may: prefix ? model.words.filter((word, id) => id > 2 && word !== prefix && word.startsWith(prefix)) : []};
}
function distance(a, b) {  // letters to change, add or leave out
  let before = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) now.push(Math.min(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] !== b[j - 1])));
    before = now;
  }
  return before[b.length];
}
// The three of its words that are written most like this one; of equals, those that the grammar allows in this place come first.
function three_like(word, before) {
  const ways = model.truth(model.ids(before.join(" "))) || {};
  const like = model.words.slice(3).filter(known => known !== ".").map(known => [distance(word, known), known]);
  const allowed = Math.min(...like.map(([far]) => far)) > Math.max(1, word.length / 3) ? 99 : .5;  // where nothing is like it, what may stand here counts
  return like.map(([far, known]) => [far - (ways[model.words.indexOf(known)] ? allowed : 0), known])
    .sort((a, b) => a[0] - b[0]).slice(0, 3).map(([, known]) => known);
}
function say() {  // one sentence about the first word that it does not know, and never one about each
  const all = wordsOf(has.text), {may} = begun(has.text), last = typing && may.length > 0 ? all.length - 1 : all.length, box = $("said"), parts = [];
  const strange = model.kind === "text" ? [] : all.slice(0, last).flatMap((word, n) => model.words.indexOf(word) < 3 ? [n] : []), at = strange.length ? strange[0] : -1, word = all[at];
  const replaced = known => has.text.replace(new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])${word}(?![\\p{L}\\p{M}\\p{N}])`, "giu"), known);
  if (at >= 0) {
    parts.push(make("b", {textContent: word}), ` is not among its ${model.words.length - 3} words and is left out${strange.length > 1 ? `, as ${strange.length > 2 ? `${strange.length - 1} more are` : `${all[strange[1]]} is`}` : ""}. Take instead `,
      ...three_like(word, all.slice(0, at)).flatMap((known, n) => [n ? " " : "", make("button", {textContent: known, onclick: () => { change({text: replaced(known)}); $("text").focus(); }})]));
    if ($("gpt")) parts.push(", or ", make("button", {textContent: "read it as real text", onclick: () => choose("text")}));
  }
  if (model.ids(has.text).length - 1 > longest()) parts.push(` It reads at most ${longest()} ${model.kind === "text" ? "tokens" : "words"}; the rest is left out.`);
  if (box.textContent !== parts.map(part => part.textContent ?? part).join("")) box.replaceChildren(...parts);
}
// ---------------------------------------------------------------- the sentence and its arcs
function drawWords() {
  const box = $("sentence").querySelector(".words"), among = (step, t) => Math.min(ids.length - 1, Math.max(0, t + step));
  const keys = t => ({ArrowLeft: among(-1, t), ArrowUp: among(-1, t), ArrowRight: among(1, t), ArrowDown: among(1, t), Home: 0, End: ids.length - 1});
  keep(box, ids, (_, t) => make("button", {onclick: () => change({place: t}),
    onpointerenter: event => { if (event.pointerType === "mouse") follow(t); }, onpointerleave: () => follow(null),
    onfocus: () => { if (t !== has.place) follow(t); }, onblur: () => follow(null),
    onkeydown: event => { if (event.key in keys(t)) { event.preventDefault(); box.children[keys(t)[event.key]].focus(); } }}),
  (node, id, t) => {
    node.className = [t ? "" : "bos", model.glued(id) ? "glued" : "", model.isByte?.(id) ? "byte" : ""].join(" ").trim();
    node.textContent = model.name(id).replace(/^‑(?=.)/, ""); node.setAttribute("aria-pressed", t === has.place); node.tabIndex = t === has.place ? 0 : -1;
    node.classList.toggle("new", fresh && t === ids.length - 1 && t > 0 && t === has.place);
  });
  $("press").textContent = `${has.text === THANKS ? "Ben thanks whoever told him something, so “thanks” has to look back at anna. " : ""}Press a word to see where it looks.`;
  layOut(); drawArcs(fresh); fresh = false;
}
let lay;  // where the words are: {down, at: [[x, y, half of its size across]], width, height, room}
function layOut() {
  const stage = $("sentence"), box = stage.querySelector(".words"), wide = stage.clientWidth, longestArc = ids.length - 1;
  box.className = "words"; box.style.cssText = "width:max-content;font-size:20px;gap:5px";
  const natural = box.offsetWidth, size = Math.min(compact ? 23 : 26, 20 * (wide - 20) / natural), down = size < (small() ? 15 : 12.5) && small();
  if (down) {
    box.className = "words down";
    box.style.cssText = `font-size:${ids.length > 24 ? 14 : 16}px;gap:${ids.length > 24 ? 1 : 3}px;width:100%;padding:26px 0 6px`;
  } else {
    const font = Math.max(12, size), room = Math.round(Math.min(compact ? 120 : 150, 34 + Math.max(60, wide * .016 * longestArc)));
    box.style.cssText = `font-size:${font}px;gap:${font / 4}px;min-width:100%;width:max-content;padding:${room}px 4px ${Math.round(room * .8)}px`;
  }
  const base = stage.getBoundingClientRect(), at = [...box.children].map(node => { const r = node.getBoundingClientRect();
    return [r.left - base.left + stage.scrollLeft + r.width / 2, r.top - base.top + r.height / 2, down ? r.width / 2 : r.height / 2]; });
  lay = {down, at, width: Math.max(wide, box.offsetWidth), height: box.offsetHeight};
  const widest = Math.max(...at.map(a => a[2]));
  if (down) at.forEach(a => { a[2] = widest; });
  if (!down && lay.width > wide) { const x = at[has.place][0]; if (x < stage.scrollLeft + 40 || x > stage.scrollLeft + wide - 40) stage.scrollLeft = x - wide * .7; }
}
// From the token that asks (i) to the one that is looked at (j): later layers above or right of the words, earlier ones below or left.
function arc(i, j, l, h) {
  const {down, at, width, height} = lay, [x, y, r] = at[i], [u, v] = at[j], upper = sizes().n_layers / 2, side = l >= upper ? -1 : 1;
  const slot = h + (upper > 1 && l % 2 ? .5 : 0), nest = (slot - 1.5) * (i < j ? -1 : 1);
  if (down) {
    const edge = x - side * (r + 2), room = (width / 2 - r - 14) / .75, far = i === j ? 16 + 7 * slot : Math.min(room - 9 * (3 - slot), 26 + Math.abs(y - v) * .62 + slot * 8);
    const [a, b] = i === j ? [y - 5, y + 5] : [y + 2.2 * nest, v - 2.2 * nest], out = edge - side * far;
    return `M${edge} ${a}C${out} ${a} ${out} ${b} ${edge} ${b}`;
  }
  const edge = y + side * (r + 2), room = ((side < 0 ? y : height - y) - r - 8) / .75, far = i === j ? 16 + 8 * slot : Math.min(room - 11 * (3 - slot), 26 + Math.abs(x - u) * .42 + slot * 10);
  const [a, b] = i === j ? [x - 5, x + 5] : [x + 3.6 * nest, u - 3.6 * nest], out = edge + side * far;
  return `M${a} ${edge}C${a} ${out} ${b} ${out} ${b} ${edge}`;
}
function drawArcs(draws) {
  const i = followed ?? has.place, box = document.querySelector(".arcs"), {width, height, down, at} = lay, parts = [], lit = ids.map(() => [0, ""]), best = [];
  box.setAttribute("viewBox", `0 0 ${width} ${height}`); box.setAttribute("width", width); box.setAttribute("height", height);
  const text = model.kind === "text", heads = headsOf().filter(({l, h}) => used(l, h));
  for (const {l, h, weights} of heads) weights.forEach((r, t) => { if (t !== i) r.forEach((a, j) => {
    if (a > .35 && j !== t && (j || !text)) parts.push(svg("path", {class: "faint", d: arc(t, j, l, h), "stroke-width": 1 + 3 * a}));
  }); });
  for (const {l, h, weights} of heads) weights[i].forEach((a, j) => {
    if (text && !j && i) return;  // a head of a GPT that has nothing to do looks at the beginning: see the maps
    if (a > lit[j][0]) lit[j] = [a, colour(l, h)];
    if (a < (text ? .1 : .04)) return;
    best.push([a, l, h, j]);
    parts.push(svg("path", {class: draws ? "fresh" : "", pathLength: 1, d: arc(i, j, l, h), stroke: colour(l, h), "stroke-width": .6 + (down ? 7 : 9) * a, opacity: .35 + .6 * a}));
  });
  $("lower").textContent = text ? "layers 0 and 1" : "layer 0"; $("upper").textContent = text ? "layers 2 and 3" : "layer 1";
  $("sentence").parentNode.classList.toggle("down", down);
  box.replaceChildren(...parts);
  [...$("sentence").querySelectorAll(".words button")].forEach((node, t) => { fit(node, {"--lit": lit[t][1] || "transparent", "--much": `${Math.round(lit[t][0] * 55)}%`});
    node.classList.toggle("later", has.mask && t > i); });
  best.sort((a, b) => (a[3] === i) - (b[3] === i) || b[0] - a[0]);  // that it looks at itself says least
  $("told").replaceChildren(make("b", {textContent: called(shown(i))}), best.length ? " looks most at " : heads.length ? " looks at nothing in particular." : " looks at nothing: every head is off.", ...best.slice(0, compact ? 2 : 3).flatMap(([a, l, h, j], n) =>
    [n ? ", " : "", make("span", {className: "chip"}, make("i", {className: "dot", style: `background:${colour(l, h)}`}), make("b", {textContent: j === i ? "itself" : called(shown(j))}), ` ${a.toFixed(2)} in ${compact ? "" : "head "}(${l}, ${h})`)]), best.length ? "." : "");
}
function follow(t) {
  if (followed === t) return;
  followed = t === has.place ? null : t;
  drawArcs(false);
}
// ---------------------------------------------------------------- what comes next
function drawNext() {
  const least = compact ? 4 : 5, most = compact ? 5 : 8, size = ([, share, right]) => Math.max(share, right);
  const all = p.map((share, id) => [id, share, exact?.[id]?.[0] ?? 0]).filter(([id]) => model.kind === "text" ? id !== ids[0] : model.sayable(id));
  const top = all.sort((a, b) => size(b) - size(a) || a[0] - b[0]).filter((one, n) => n < least || n < most && size(one) > .02).sort((a, b) => b[1] - a[1]);
  keep($("next").tBodies[0], top, () => make("tr", {}, make("td", {}, make("button")),
    make("td", {"aria-hidden": "true"}, make("div", {className: "track"}, make("div", {className: "bar"}), make("div", {className: "tick"}))),
    make("td", {className: "model"}), make("td", {className: "grammar"})),
  (tr, [id, share, right]) => {
    const [button, bar, tick] = [tr.querySelector("button"), tr.querySelector(".bar"), tr.querySelector(".tick")];
    fit(button, {textContent: model.name(id), disabled: !model.sayable(id), onclick: () => write(id), title: `write ${model.name(id)}`});
    bar.style.width = `${100 * share}%`; tick.style.left = `${100 * right}%`; tick.hidden = !exact; tick.classList.toggle("never", !right);
    tr.cells[2].textContent = three(share); tr.cells[3].textContent = !exact ? "–" : right ? three(right) : "0";
  });
  $("silent").textContent = exact || model.kind === "text" ? "" : "The grammar would not have written these words, so until the next full stop it says nothing (–).";
  if (model.kind === "text" && writing) $("silent").textContent = "It draws each token by its probability, so it often takes an unlikely one and invents a word. A lower temperature, below the heads, makes it careful.";
  const full = has.place >= longest();
  for (const id of ["one", "on"]) $(id).setAttribute("aria-disabled", full);
}
const upToHere = () => ids.slice(1, has.place + 1);
function write(id) {
  if (has.place >= longest()) return;
  typing = false;
  change({text: model.textOf([...upToHere(), id])});
}
function draws(shares) {  // an index, drawn by its probability
  let left = Math.random() * shares.reduce((a, b) => a + b);
  return Math.max(0, shares.findIndex(share => (left -= share) < 0));
}
function nextWord() { write(draws(p.map((share, id) => model.sayable(id) ? share : 0))); }
function writeOn() {
  if (writing) return hush();
  const go = () => {
    if (has.place >= longest()) return hush();
    nextWord();
    if (ids[has.place] === model.stop || has.place >= longest()) return hush();
    if (still.matches) return go();
    writing = setTimeout(go, 700);
  };
  $("on").textContent = "Stop"; writing = true;
  if ($("stage").getBoundingClientRect().top < 0) $("stage").scrollIntoView({behavior: still.matches ? "auto" : "smooth"});
  go();
}
function hush() { clearTimeout(writing); writing = null; $("on").textContent = "Write on"; }
function another() {  // a sentence that the grammar writes, up to a place before its end
  for (let tries = 0; ; tries++) {
    const found = [];
    let state = 0, id;
    const {edges, words, stop} = model;
    do { const ways = Object.entries(edges[state]), way = ways[draws(ways.map(([, [share]]) => share))]; id = Number(way[0]); state = way[1][1]; found.push(id); } while (id !== stop);
    const cut = found.slice(0, found.includes(words.indexOf("thanks")) ? -2 : -1 - Math.floor(Math.random() * 3));
    if (cut.length > 5 && cut.length < 16 || tries > 50) return change({text: cut.map(id => words[id]).join(" ")});
  }
}
// ---------------------------------------------------------------- the maps
function cells(weights, x, y, s, fill) {  // a map as ten paths, one for each tenth
  const tenths = Array.from({length: 11}, () => []);
  weights.forEach((r, t) => r.forEach((a, j) => { const tenth = Math.round(a * 10); if (tenth) tenths[tenth].push(`M${x + j * s} ${y + t * s}h${s}v${s}h${-s}z`); }));
  const T = weights.length, unseen = has.mask ? weights.slice(1).map((_, t) => `M${x + (t + 1) * s} ${y + t * s}h${(T - t - 1) * s}v${s}h${-(T - t - 1) * s}z`).join("") : "";
  return [svg("path", {class: "unseen", d: unseen}), ...tenths.map((path, n) => path.length ? svg("path", {d: path.join(""), fill, "fill-opacity": n / 10}) : "")];
}
function drawMaps() {
  const likely = likeliest(p);
  $("guess").textContent = `${quoted(has.place)} goes on with “${model.name(likely)}” ${three(p[likely])}`;
  keep($("maps"), headsOf(), ({l, h}) => make("div", {className: "map"}, make("label", {}, make("input", {type: "checkbox"}), make("span")),
    make("button", {}, svg("svg", {preserveAspectRatio: "none", "shape-rendering": "crispEdges", "aria-hidden": "true"})), make("div", {"aria-hidden": "true"})),
  (node, {l, h, weights}) => {
    const r = weights[has.place], best = r.indexOf(Math.max(...r)), T = ids.length, name = `${l},${h}`;
    const [box, button, picture] = [node.querySelector("input"), node.querySelector("button"), node.querySelector("svg")];
    node.style.setProperty("--head", colour(l, h)); node.classList.toggle("off", !used(l, h)); node.querySelector("span").textContent = `(${l}, ${h})`;
    fit(box, {checked: !has.off.has(name), "aria-label": `use head (${l}, ${h})`,
      onchange: () => { const off = new Set(has.off); box.checked ? off.delete(name) : off.add(name); change({off}); }});
    picture.setAttribute("viewBox", `0 0 ${T} ${T}`);
    picture.replaceChildren(...cells(weights, 0, 0, 1, colour(l, h)), svg("rect", {class: "asks", x: 0, y: has.place, width: T, height: 1, "stroke-width": 1.5}));
    fit(button, {onclick: () => zoom([l, h], button), "aria-pressed": has.zoom[0] === l && has.zoom[1] === h,
      "aria-label": `Look inside head (${l}, ${h}). ${shown(has.place)} looks most at ${shown(best)}, ${r[best].toFixed(2)}.`});
    node.lastElementChild.textContent = `→ ${shown(best)} ${r[best].toFixed(2)}`;
  });
}
// ---------------------------------------------------------------- dares, switches, the words it knows
const oneHeadOff = () => has.off.size === 1 && has.mask && has.scale && !has.layersOff.size;
const saysAfter = (text, test) => model.textOf(upToHere()) === text && test(model.name(likeliest(p)));
function nounAndVerb() {  // one sentence of the grammar's, and a word in it that is followed by "the" for certain, once, and once is not
  const {words, edges, stop, after} = model, all = ids.slice(1, ids.at(-1) === stop ? -1 : undefined), the = words.indexOf("the");
  const both = facts.kinds.find(([kind]) => kind === "nouns and verbs")[1].map(word => words.indexOf(word));
  const verb = t => edges[after([1, ...all.slice(0, t + 1)])]?.[the]?.[0] === 1;
  if (all.includes(stop) || after([1, ...all]) < 0) return false;
  return both.some(id => new Set(all.flatMap((word, t) => word === id ? [verb(t)] : [])).size === 2);
}
function looksAtThePrevious() {  // inside the head that gives most to the token before, over at least six tokens
  if (has.zoom.length < 2 || ids.length < 7) return false;
  const before = weights => weights.slice(1).reduce((sum, r, t) => sum + r[t], 0) / (ids.length - 1);
  const most = Math.max(...headsOf().map(head => before(head.weights)));
  return before(result.layers[has.zoom[0]].heads[has.zoom[1]].weights) === most;
}
const DARES = {
  ben: {model: "grammar", at: "heads", text: "Untick one of the heads below, and no other, so that “anna tells ben … and ben thanks” goes on with ben, and not with anna.", stage: THANKS, met: () => oneHeadOff() && saysAfter(THANKS, word => word === "ben")},
  bears: {model: "grammar", at: "heads", text: "“she bears the” goes on with a load or a pain. Untick one head, and no other, so that she bears something that nobody bears.", stage: "she bears the",
    met: () => oneHeadOff() && saysAfter("she bears the", word => !["load", "pain"].includes(word))},
  twice: {model: "grammar", at: "writing", text: "Write one sentence that the grammar allows in which the same word is a noun once and a verb once.", stage: "the king with the", met: nounAndVerb},
  peace: {model: "text", at: "writing", text: "Real text: write a beginning after which peace is the likeliest word, without writing peace yourself.", stage: "the nations of the world want",
    met: () => model.name(likeliest(p)) === "peace" && !has.text.toLowerCase().includes("peace")},
  previous: {model: "text", at: "heads", text: "Real text: among the sixteen heads, find the one that looks at the previous token, and look inside it.", stage: FARMERS, met: looksAtThePrevious},
};
function drawDares() {
  const dares = Object.entries(DARES).filter(([, dare]) => dare.model === "grammar" || $("gpt"));
  for (const [name, dare] of dares) if (dare.model === model.kind && dare.met()) done.add(name);
  try { localStorage.setItem("dares", JSON.stringify([...done])); } catch { /* a page in a frame keeps nothing */ }
  $("h-dares").textContent = dares.length === 5 ? "Five dares" : "Three dares";
  keep($("dares"), dares, ([, dare]) => make("li", {}, make("span", {className: "mark", role: "img"}), make("div", {}, make("span"), " ",
    make("button", {textContent: "Begin here", onclick: async () => { await choose(dare.model, dare.stage); $(dare.at).scrollIntoView({block: dare.at === "heads" ? "center" : "start", behavior: still.matches ? "auto" : "smooth"}); }}))), (li, [name, {text}]) => {
    li.classList.toggle("done", done.has(name)); li.firstChild.textContent = done.has(name) ? "✓" : ""; li.firstChild.setAttribute("aria-label", done.has(name) ? "done" : "not yet done");
    li.lastChild.firstChild.textContent = text;
  });
}
function drawSwitches() {
  $("mask").checked = has.mask; $("scale").checked = has.scale; result.layers.forEach((_, l) => { $(`layer${l}`).checked = !has.layersOff.has(l); });
  $("heat").value = has.heat; $("degrees").textContent = has.heat.toFixed(1); $("copied").textContent = "";
}
const asNew = () => Object.assign(has, {off: new Set(), layersOff: new Set(), mask: true, scale: true, heat: 1});
function complete() {  // the words that the last one may become, below the field
  const box = $("options"), {prefix, may} = begun($("text").value), list = typing ? may.slice(0, 8) : [];
  if (chosen >= list.length) chosen = -1;
  box.hidden = !list.length; $("examples").hidden = list.length > 0;
  keep(box, list, () => make("button", {role: "option", tabIndex: -1, onpointerdown: event => event.preventDefault()}), (node, word, n) => { node.id = `option${n}`; node.replaceChildren(make("b", {textContent: word.slice(0, prefix.length)}), word.slice(prefix.length));
    node.setAttribute("aria-selected", n === chosen); node.onclick = () => take(word); });
  $("text").setAttribute("aria-expanded", String(list.length > 0));
  chosen < 0 ? $("text").removeAttribute("aria-activedescendant") : $("text").setAttribute("aria-activedescendant", `option${chosen}`);
  for (const node of $("known").querySelectorAll("dd button")) node.classList.toggle("may", typing && may.includes(node.textContent));
  return list;
}
function take(word) {  // in the place of the one that was begun, or after the last one
  const field = $("text"), {prefix, may} = begun(field.value), text = may.includes(word) && (typing || model.words.indexOf(prefix) < 3) ? field.value.slice(0, field.value.length - prefix.length) : field.value.trimEnd() && `${field.value.trimEnd()} `;
  typing = false; chosen = -1; field.value = `${text}${word} `;
  change({text: field.value}); complete();
}
function listen() {
  const field = $("text");
  field.oninput = () => { hush(); typing = true; chosen = -1; change({text: field.value}); complete(); };
  field.onblur = () => { typing = false; say(); complete(); };
  field.onkeydown = event => {
    const list = complete(), step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step && list.length) { event.preventDefault(); chosen = (chosen + step + list.length + (chosen < 0 && step < 0 ? 1 : 0)) % list.length; complete(); }
    else if (event.key === "Enter" && list.length && (chosen >= 0 || model.words.indexOf(begun(field.value).prefix) < 3)) { event.preventDefault(); take(list[Math.max(0, chosen)]); }
    else if (event.key === "Escape") { typing = false; chosen = -1; complete(); }
  };
  $("back").onclick = () => { hush(); typing = false; change({text: model.textOf(ids.slice(1, -1))}); complete(); };
  $("known").querySelector("summary").textContent = `The ${models.grammar.words.length - 3} words that it knows`;
  $("known").querySelector("dl").append(...facts.kinds.flatMap(([kind, list]) => [make("dt", {textContent: kind}), make("dd", {}, ...list.map(word => make("button", {textContent: word, onpointerdown: event => event.preventDefault(), onclick: () => take(word)})))]));
  $("one").onclick = nextWord; $("on").onclick = writeOn; $("other").onclick = () => { hush(); another(); };
  for (const id of ["mask", "scale"]) $(id).onchange = () => change({[id]: $(id).checked});
  $("heat").oninput = () => change({heat: Number($("heat").value)});
  $("reset").onclick = () => { asNew(); change({}); };
  $("copy").onclick = async () => { try { await navigator.clipboard.writeText(`${location.href.split("#")[0]}#${address()}`); $("copied").textContent = "copied"; } catch { $("copied").textContent = "it is in the browser's address line"; } };
  $("copy").hidden = parent !== window;
  $("models").hidden = !$("gpt");
  for (const radio of $("models").querySelectorAll("input")) radio.onchange = () => choose(radio.value, carried(radio.value));
}
// ---------------------------------------------------------------- the address, and what is around the page
function address() {
  const set = new URLSearchParams({text: has.text.trim()});
  if (has.model !== "grammar") set.set("model", has.model);
  if (has.scene) set.set("scene", has.scene);
  if (has.place !== ids.length - 1) set.set("asks", has.place);
  if (has.off.size) set.set("off", [...has.off].map(name => name.replace(",", ".")).sort().join(" "));
  if (has.layersOff.size) set.set("without", [...has.layersOff].sort().join(" "));
  for (const name of ["mask", "scale"]) if (!has[name]) set.set(name, "off");
  if (has.heat !== 1) set.set("temperature", has.heat);
  if (has.zoom.length) set.set("zoom", has.zoom.join("."));
  return set.toString();
}
let saved = "", saving = null;
function saveAddress() {
  clearTimeout(saving);
  saving = setTimeout(() => { if (address() === saved) return; saved = address(); try { history.replaceState(null, "", `#${saved}`); } catch { /* not in this frame */ } parent.postMessage({address: saved}, "*"); }, 250);
}
async function go(hash) {  // what an address holds; what it holds wrongly is passed over
  const get = new URLSearchParams(hash.replace(/^#/, "")), list = name => (get.get(name) || "").split(" ").filter(Boolean);
  const within = (n, end) => Number.isInteger(n) && n >= 0 && n < end, kind = get.get("model") === "text" && $("gpt") ? "text" : "grammar";
  await load(kind);
  const {n_layers: L, n_heads: H, d} = models[kind].about.settings, heat = Number(get.get("temperature")), scene = Number(get.get("scene"));
  const zoomed = (get.get("zoom") || "").split(".").filter(Boolean).map(Number), bad = zoomed.findIndex((n, depth) => !within(n, [L, H, 200, d / H][depth] ?? 0));
  Object.assign(has, {model: kind, off: new Set(list("off").map(name => name.replace(".", ",")).filter(name => new RegExp(`^[0-${L - 1}],[0-${H - 1}]$`).test(name))),
    layersOff: new Set(list("without").map(Number).filter(l => within(l, L))), mask: get.get("mask") !== "off", scale: get.get("scale") !== "off",
    heat: heat >= .1 && heat <= 3 ? heat : 1, zoom: zoomed.slice(0, bad < 0 ? 4 : bad), scene: within(scene - 1, 7) ? scene : 0, place: 0});
  const text = get.get("text") ?? (compact ? SHORT : Object.values(EXAMPLES[kind])[0]), asks = Number(get.get("asks") ?? -1);
  if (within(asks, 200)) { has.place = asks; change({text}, true); } else change({text});
  saved = address();  // until something changes, the address stays as it was written
}
function settle() {  // in a frame: what is around it makes it as high as the page, and tells it the theme
  new ResizeObserver(() => parent.postMessage({height: document.body.offsetHeight + 4}, "*")).observe(document.body);
  let wide = document.body.clientWidth;
  addEventListener("resize", () => { if (document.body.clientWidth !== wide) { wide = document.body.clientWidth; draw(); } });
  addEventListener("message", ({source, data}) => {
    if (parent === window || source !== parent || !data) return;
    if (data.theme) { theme = data.theme; paint(); }
    if (typeof data.address === "string") go(data.address);
  });
  addEventListener("hashchange", () => { if (location.hash.slice(1) !== saved) go(location.hash); });
}
function sweep() {  // once, when it is first seen: each word asks in turn, for less than five seconds
  if (still.matches || !("IntersectionObserver" in window)) return;
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    const pace = Math.min(330, 4200 / ids.length), text = has.text;
    let t = 1;
    const step = () => {
      const over = has.text !== text || t >= ids.length || document.querySelector(".words:hover");
      $("told").setAttribute("aria-live", over ? "polite" : "off");  // it is not read aloud
      if (over) { if (has.text === text) { followed = null; drawArcs(false); } return; }
      followed = t === has.place ? null : t; t++;
      drawArcs(true);
      setTimeout(step, pace);
    };
    step();
  }, {threshold: .5});
  seen.observe($("sentence"));
}
async function start() {
  document.documentElement.classList.toggle("compact", compact);
  await load("grammar");
  try { done = new Set(JSON.parse(localStorage.getItem("dares") || "[]")); } catch { /* a page in a frame keeps nothing */ }
  $("page").hidden = false;
  listen(); listenInside(); settle(); await go(location.hash);
  sweep();
  window.explainer = {ready: true, load, ids: (kind, text) => models[kind].ids(text),
    run: (ids, options, kind = "grammar") => { const {streams, layers} = run(models[kind], ids, options);
      return {logits: streams.at(-1).map(v => readOff(models[kind], v)), heads: layers.map(({heads}) => heads)}; },
    exact: ids => { const ways = models.grammar.truth(ids) || {}; return models.grammar.words.map((_, id) => ways[id] ? ways[id][0] : 0); }};
  parent.postMessage({ready: true}, "*");
}
start().catch(error => { $("failed").hidden = false; $("failed").textContent = `This page could not start (${error.message}). It needs a browser of 2023 or newer.`; throw error; });
