"use strict";
// ---------------------------------------------------------------- the model
// A weight is {shape, data}; a vector is an array; a text of T tokens is an array of T vectors.
const half = bits => { const sign = bits & 0x8000 ? -1 : 1, e = bits >> 10 & 31, m = bits & 1023;
  return sign * (e === 0 ? m * 2 ** -24 : e === 31 ? NaN : (1 + m / 1024) * 2 ** (e - 15)); };
function readSafetensors(buffer) {
  const view = new DataView(buffer), length = Number(view.getBigUint64(0, true)), weights = {};
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  for (const name of Object.keys(head).filter(name => name !== "__metadata__")) {
    const {dtype, shape, data_offsets: [from, to]} = head[name];
    const size = dtype === "F16" ? 2 : 4, data = new Float64Array((to - from) / size);
    for (let i = 0, at = 8 + length + from; i < data.length; i++, at += size)
      data[i] = size === 2 ? half(view.getUint16(at, true)) : view.getFloat32(at, true);
    weights[name] = {shape, data};
  }
  return {weights, about: JSON.parse(head.__metadata__.about)};
}
const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
const add = (a, b) => a.map((x, i) => x + b[i]);
const row = (W, i) => W.data.subarray(i * W.shape[1], (i + 1) * W.shape[1]);
const linear = (x, W, b) => Array.from({length: W.shape[0]}, (_, i) => dot(x, row(W, i)) + b.data[i]);
function layerNorm(x, gain, bias) {
  const mean = x.reduce((a, b) => a + b) / x.length, d = x.map(v => v - mean);
  const root = Math.sqrt(dot(d, d) / x.length + 1e-5);
  return d.map((v, i) => gain.data[i] * v / root + bias.data[i]);
}
function softmax(scores) {
  const most = Math.max(...scores), e = scores.map(s => Math.exp(s - most)), sum = e.reduce((a, b) => a + b);
  return e.map(v => v / sum);
}
// options: mask, scale (booleans), off: set of "layer,head", layersOff: set of numbers
function run(model, ids, options = {}) {
  const {mask = true, scale = true, off = new Set(), layersOff = new Set()} = options;
  const {weights: w, about: {settings: {d, n_heads: h, n_layers: L}}} = model, dk = d / h, T = ids.length;
  let x = ids.map((id, t) => add(Array.from(row(w["embedding.weight"], id)), row(w["position.weight"], t)));
  const heads = [], streams = [x], inner = [];  // heads[layer][head] = {q, k, v, products, scores, weights}
  for (let l = 0; l < L; l++) {
    const p = `blocks.${l}.`, part = (name, y) => y.map(v => linear(v, w[`${p}${name}.weight`], w[`${p}${name}.bias`]));
    const y = x.map(v => layerNorm(v, w[p + "norm1.weight"], w[p + "norm1.bias"]));
    const [Q, K, V] = ["q", "k", "v"].map(n => part(`attention.W_${n}`, y));
    const merged = x.map(() => new Array(d).fill(0));
    heads.push([]);
    for (let i = 0; i < h; i++) {
      const cut = M => M.map(v => v.slice(i * dk, (i + 1) * dk)), [q, k, v] = [cut(Q), cut(K), cut(V)];
      const products = q.map(a => k.map(b => dot(a, b)));
      const scores = products.map((r, t) => r.map((s, j) => mask && j > t ? -Infinity : scale ? s / Math.sqrt(dk) : s));
      const seen = scores.map(softmax);
      heads[l].push({q, k, v, products, scores, weights: seen});
      if (!off.has(`${l},${i}`) && !layersOff.has(l))
        seen.forEach((r, t) => r.forEach((a, j) => { if (a) for (let n = 0; n < dk; n++) merged[t][i * dk + n] += a * v[j][n]; }));
    }
    if (!layersOff.has(l)) {
      x = x.map((v, t) => add(v, linear(merged[t], w[p + "attention.W_o.weight"], w[p + "attention.W_o.bias"])));
      const z = x.map(v => layerNorm(v, w[p + "norm2.weight"], w[p + "norm2.bias"]));
      inner.push(part("mlp.0", z).map(v => v.map(a => Math.max(0, a))));
      x = part("mlp.2", inner[l]).map((v, t) => add(x[t], v));
    } else inner.push(x.map(() => new Array(w[p + "mlp.0.bias"].data.length).fill(0)));
    streams.push(x);
  }
  return {logits: x.map(v => readOff(model, v)), heads, streams, inner};
}
const readOff = ({weights: w}, v) => linear(layerNorm(v, w["norm.weight"], w["norm.bias"]), w["output.weight"], w["output.bias"]);
// The grammar as states: edges[state] = {word id: [probability, next state]}.
function readGrammar(buffer, shares) {
  const view = new DataView(buffer), edges = [];
  for (let at = 0; at < buffer.byteLength; at += 7) {
    const [state, word, share, next] = [view.getUint16(at, true), view.getUint8(at + 2), view.getUint16(at + 3, true), view.getUint16(at + 5, true)];
    (edges[state] = edges[state] || {})[word] = [shares[share], next];
  }
  return edges;
}
const stateAfter = (edges, ids, restart) => ids.slice(1).reduce((state, id) =>
  edges[state] && edges[state][id] ? edges[state][id][1] : id === restart ? 0 : -1, 0);
async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
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
const nameOf = (l, h) => `head (${l}, ${h})`, colour = (l, h) => `var(--h${l}${h})`;
// ---------------------------------------------------------------- what the page knows
const facts = JSON.parse($("facts").textContent);
const THANKS = "anna tells ben that the kings near the cabinets love the doors and ben thanks";
const EXAMPLES = {"who thanks whom": THANKS,
  "the keys to …": "the keys to the cabinet", "she bears …": "she bears the", "they watch …": "they watch the",
  "far away": "the dog near the cabinets behind the kings with the letters"};
const SHORT = "anna tells ben that the kings love the doors and ben thanks";
let model, edges, words, result, ids = [1], p = [], exact = null;
const has = {text: "", place: 0, off: new Set(), layersOff: new Set(), mask: true, scale: true, heat: 1, zoom: []};
let followed = null, typing = false, chosen = -1, fresh = true, done = new Set(), writing = null;
const called = word => word === "." ? "the full stop" : word;
const longest = () => model.about.settings.max_length - 1, shown = t => t === 0 ? "BOS" : words[ids[t]];
const used = (l, h) => !has.off.has(`${l},${h}`) && !has.layersOff.has(l), stop = () => words.indexOf(".");

// A text as words. Signs other than the full stop are passed over: "keys," is keys.
const wordsOf = text => (text.toLowerCase().normalize("NFC").match(/\.|[\p{L}\p{M}\p{N}'’]+/gu) || []).map(word => word.replace(/^['’]+|['’]+$/g, "")).filter(Boolean);
function begun(text) {  // the word that is being written, and what it may become
  const prefix = /[\p{L}\p{M}]$/u.test(text) ? wordsOf(text).at(-1) || "" : "";
  return {prefix, may: prefix ? words.filter((word, id) => id > 2 && word !== prefix && word.startsWith(prefix)) : []};
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
function change(set, keepPlace = false) {
  const length = ids.length;
  Object.assign(has, set);
  if ("text" in set) {
    const known = wordsOf(has.text).map(word => words.indexOf(word)).filter(id => id > 2);
    ids = [1, ...known.slice(0, longest())];
    if (!keepPlace) has.place = ids.length - 1;
    if (document.activeElement !== $("text") || $("text").value.trim() !== has.text.trim()) $("text").value = has.text;
  }
  has.place = Math.min(Math.max(0, has.place), ids.length - 1);
  const [l, h, k] = has.zoom;
  if (k !== undefined && (k >= ids.length || has.mask && k > has.place)) has.zoom = [l, h];
  fresh = ids.length !== length || "place" in set || "text" in set || fresh;
  result = run(model, ids, has);
  p = softmax(result.logits[has.place].map(z => z / has.heat));
  exact = edges[stateAfter(edges, ids.slice(0, has.place + 1), stop())] || null;
  followed = null;
  draw();
}
function draw() {
  say(); drawWords(); drawNext();
  if (compact) return;
  drawMaps(); drawInside(); drawDares(); drawSwitches(); saveAddress();
}
function say() {
  const all = wordsOf(has.text), {may} = begun(has.text), wrong = [...new Set(all.filter(word => words.indexOf(word) < 3))], box = $("said");
  const open = typing && may.length > 0, list = open ? wrong.filter(word => word !== all.at(-1)) : wrong;
  const parts = list.map(word => {
    const near = words.slice(3).map(known => [distance(word, known), known]).sort((a, b) => a[0] - b[0])[0];
    return near[0] <= (word.length > 4 ? 2 : 1) ? [`${word} is not among its words. Did you mean `, make("button", {textContent: near[1],
      onclick: () => { const at = $("text"); change({text: has.text.replace(new RegExp(`(?<!\\p{L})${word}(?!\\p{L})`, "giu"), near[1])}); at.focus(); }}), "? "]
      : [`${word} is not among its ${words.length - 3} words and is left out. `]; }).flat();
  if (all.length - wrong.length > longest()) parts.push(`It reads at most ${longest()} words; the rest is left out.`);
  if (box.textContent !== parts.map(part => part.textContent ?? part).join("")) box.replaceChildren(...parts);
}
// ---------------------------------------------------------------- the sentence and its arcs
function drawWords() {
  const box = $("sentence").querySelector(".words");
  keep(box, ids, (_, t) => make("button", {className: t ? "" : "bos", onclick: () => change({place: t}), onpointerenter: event => { if (event.pointerType === "mouse") follow(t); },
    onpointerleave: () => follow(null), onfocus: () => { if (t !== has.place) follow(t); }, onblur: () => follow(null), onkeydown: event => {
      const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key], next = event.key === "Home" ? 0 : event.key === "End" ? ids.length - 1 : t + step;
      if (Number.isNaN(next)) return;
      event.preventDefault();
      if (box.children[next]) box.children[next].focus();
    }}), (node, _, t) => { node.textContent = shown(t); node.setAttribute("aria-pressed", t === has.place); node.tabIndex = t === has.place ? 0 : -1;
      node.classList.toggle("new", fresh && t === ids.length - 1 && t > 0 && t === has.place); });
  layOut(); drawArcs(fresh); fresh = false;
}
let lay;  // where the words are: {down, at: [[x, y, half of its size across]], width, height, room}
function layOut() {
  const stage = $("sentence"), box = stage.querySelector(".words"), wide = stage.clientWidth, longestArc = ids.length - 1;
  box.className = "words"; box.style.cssText = "width:max-content;font-size:20px;gap:5px";
  const natural = box.offsetWidth, size = Math.min(compact ? 23 : 26, 20 * (wide - 8) / natural), down = size < (small() ? 15 : 12.5) && small();
  if (down) {
    box.className = "words down";
    box.style.cssText = `font-size:${ids.length > 24 ? 14 : 16}px;gap:${ids.length > 24 ? 1 : 3}px;width:100%;padding:26px 0 6px`;
  } else {
    const font = Math.max(13, size), room = Math.round(Math.min(compact ? 120 : 150, 34 + Math.max(60, wide * .016 * longestArc)));
    box.style.cssText = `font-size:${font}px;gap:${font / 4}px;min-width:100%;width:max-content;padding:${room}px 4px ${Math.round(room * .8)}px`;
  }
  const base = stage.getBoundingClientRect(), at = [...box.children].map(node => { const r = node.getBoundingClientRect();
    return [r.left - base.left + stage.scrollLeft + r.width / 2, r.top - base.top + r.height / 2, down ? r.width / 2 : r.height / 2]; });
  lay = {down, at, width: Math.max(wide, box.offsetWidth), height: box.offsetHeight};
  const widest = Math.max(...at.map(a => a[2]));
  if (down) at.forEach(a => { a[2] = widest; });
  if (!down && lay.width > wide) { const x = at[has.place][0]; if (x < stage.scrollLeft + 40 || x > stage.scrollLeft + wide - 40) stage.scrollLeft = x - wide * .7; }
}
// From the word that asks (i) to the one that is looked at (j): layer 1 above or right of the words, layer 0 below or left.
function arc(i, j, l, h) {
  const {down, at, width, height} = lay, [x, y, r] = at[i], [u, v] = at[j], side = l ? -1 : 1, nest = (h - 1.5) * (i < j ? -1 : 1);
  if (down) {
    const edge = x - side * (r + 2), room = (width / 2 - r - 14) / .75, far = i === j ? 16 + 7 * h : Math.min(room - 9 * (3 - h), 26 + Math.abs(y - v) * .62 + h * 8);
    const [a, b] = i === j ? [y - 5, y + 5] : [y + 2.2 * nest, v - 2.2 * nest], out = edge - side * far;
    return `M${edge} ${a}C${out} ${a} ${out} ${b} ${edge} ${b}`;
  }
  const edge = y + side * (r + 2), room = ((l ? y : height - y) - r - 8) / .75, far = i === j ? 16 + 8 * h : Math.min(room - 11 * (3 - h), 26 + Math.abs(x - u) * .42 + h * 10);
  const [a, b] = i === j ? [x - 5, x + 5] : [x + 3.6 * nest, u - 3.6 * nest], out = edge + side * far;
  return `M${a} ${edge}C${a} ${out} ${b} ${out} ${b} ${edge}`;
}
function drawArcs(draws) {
  const i = followed ?? has.place, box = document.querySelector(".arcs"), {width, height, down, at} = lay, parts = [], lit = ids.map(() => [0, ""]), best = [];
  box.setAttribute("viewBox", `0 0 ${width} ${height}`); box.setAttribute("width", width); box.setAttribute("height", height);
  const each = act => result.heads.forEach((layer, l) => layer.forEach((head, h) => { if (used(l, h)) act(l, h, head.weights); }));
  each((l, h, weights) => weights.forEach((r, t) => { if (t !== i) r.forEach((a, j) => { if (a > .35 && j !== t) parts.push(svg("path", {class: "faint", d: arc(t, j, l, h), "stroke-width": 1 + 3 * a})); }); }));
  each((l, h, weights) => weights[i].forEach((a, j) => {
    if (a > lit[j][0]) lit[j] = [a, colour(l, h)];
    if (a < .04) return;
    best.push([a, l, h, j]);
    parts.push(svg("path", {class: draws ? "fresh" : "", pathLength: 1, d: arc(i, j, l, h), stroke: colour(l, h), "stroke-width": .6 + (down ? 7 : 9) * a, opacity: .35 + .6 * a}));
  }));
  const label = (text, x, y, anchor = "start") => svg("text", {x, y, "text-anchor": anchor}, text);
  parts.push(...down ? [label("layer 0", 6, 15), label("layer 1", width - 6, 15, "end")] : [label("layer 1", 2, 14), label("layer 0", 2, height - 5)]);
  box.replaceChildren(...parts);
  [...$("sentence").querySelectorAll(".words button")].forEach((node, t) => { fit(node, {"--lit": lit[t][1] || "transparent", "--much": `${Math.round(lit[t][0] * 55)}%`});
    node.classList.toggle("later", has.mask && t > i); });
  best.sort((a, b) => b[0] - a[0]);
  $("told").replaceChildren(make("b", {textContent: called(shown(i))}), best.length ? " looks most at " : " looks at nothing: every head is off.", ...best.slice(0, compact ? 2 : 3).flatMap(([a, l, h, j], n) =>
    [n ? ", " : "", make("span", {className: "chip"}, make("i", {className: "dot", style: `background:${colour(l, h)}`}), make("b", {textContent: j === i ? "itself" : called(shown(j))}), ` ${a.toFixed(2)} in (${l}, ${h})`)]), best.length ? "." : "");
}
function follow(t) {
  if (followed === t) return;
  followed = t === has.place ? null : t;
  drawArcs(false);
}
// ---------------------------------------------------------------- what comes next
function drawNext() {
  const both = p.map((share, id) => [id, share, exact && exact[id] ? exact[id][0] : 0]).filter(([id]) => id > 2), least = compact ? 4 : 5, most = compact ? 5 : 8;
  const top = both.sort((a, b) => Math.max(b[1], b[2]) - Math.max(a[1], a[2]) || a[0] - b[0]).filter(([, a, b], i) => i < least || i < most && Math.max(a, b) > .02).sort((a, b) => b[1] - a[1]);
  keep($("next").tBodies[0], top, () => { const bar = make("div", {className: "bar"}), tick = make("div", {className: "tick"});
    return make("tr", {}, make("td", {}, make("button")), make("td", {"aria-hidden": "true"}, make("div", {className: "track"}, bar, tick)), make("td", {className: "model"}), make("td", {className: "grammar"})); },
  (tr, [id, share, right]) => {
    const [button, bar, tick] = [tr.querySelector("button"), tr.querySelector(".bar"), tr.querySelector(".tick")];
    button.textContent = words[id]; button.onclick = () => write(words[id]); button.title = `write ${words[id]}`;
    bar.style.width = `${100 * share}%`; tick.style.left = `${100 * right}%`; tick.hidden = !exact; tick.classList.toggle("never", !right);
    tr.cells[2].textContent = three(share); tr.cells[3].textContent = !exact ? "–" : right ? three(right) : "0";
  });
  $("silent").textContent = exact ? "" : "The grammar would not have written these words, so until the next full stop it says nothing (–).";
  const full = has.place >= longest();
  for (const id of ["one", "on"]) $(id).setAttribute("aria-disabled", full);
}
const upToHere = () => ids.slice(1, has.place + 1).map(id => words[id]);
function write(word) { if (has.place >= longest()) return; typing = false; change({text: [...upToHere(), word].join(" ")}); }
function draws(shares) {  // an index, drawn by its probability
  let left = Math.random() * shares.reduce((a, b) => a + b);
  return Math.max(0, shares.findIndex(share => (left -= share) < 0));
}
function nextWord() { if (has.place < longest()) write(words[3 + draws(p.slice(3))]); }
function writeOn() {
  if (writing) return hush();
  const go = () => {
    if (has.place >= longest()) return hush();
    nextWord();
    if (words[ids[has.place]] === "." || has.place >= longest()) return hush();
    if (still.matches) return go();
    writing = setTimeout(go, 700);
  };
  $("on").textContent = "Stop"; writing = true;
  go();
}
function hush() { clearTimeout(writing); writing = null; $("on").textContent = "Write on"; }
function another() {  // a sentence that the grammar writes, up to a place before its end
  for (let tries = 0; ; tries++) {
    const found = [];
    let state = 0, id;
    do { const ways = Object.entries(edges[state]), way = ways[draws(ways.map(([, [share]]) => share))]; id = Number(way[0]); state = way[1][1]; found.push(id); } while (id !== stop());
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
  const flat = result.heads.flatMap((layer, l) => layer.map((head, h) => [l, h, head.weights]));
  keep($("maps"), flat, ([l, h]) => make("div", {className: "map", "--head": colour(l, h)},
    make("label", {}, make("input", {type: "checkbox", "aria-label": `use head (${l}, ${h})`, onchange: event => { const off = new Set(has.off); event.target.checked ? off.delete(`${l},${h}`) : off.add(`${l},${h}`); change({off}); }}), `(${l}, ${h})`),
    make("button", {onclick: event => zoom([l, h], event.currentTarget)}, svg("svg", {preserveAspectRatio: "none", "shape-rendering": "crispEdges", "aria-hidden": "true"})), make("div", {"aria-hidden": "true"})),
  (node, [l, h, weights]) => {
    const r = weights[has.place], best = r.indexOf(Math.max(...r)), T = ids.length, picture = node.querySelector("svg"), button = node.querySelector("button");
    node.classList.toggle("off", !used(l, h)); node.querySelector("input").checked = !has.off.has(`${l},${h}`);
    picture.setAttribute("viewBox", `0 0 ${T} ${T}`);
    picture.replaceChildren(...cells(weights, 0, 0, 1, colour(l, h)), svg("rect", {class: "asks", x: 0, y: has.place, width: T, height: 1, "stroke-width": 1.5}));
    button.setAttribute("aria-label", `Look inside head (${l}, ${h}). ${shown(has.place)} looks most at ${shown(best)}, ${r[best].toFixed(2)}.`);
    button.setAttribute("aria-pressed", has.zoom[0] === l && has.zoom[1] === h);
    node.lastElementChild.textContent = `→ ${shown(best)} ${r[best].toFixed(2)}`;
  });
}
// ---------------------------------------------------------------- inside: the whole, one head, one dot product
let opener = null;
function zoom(to, from = null) {
  if (from) opener = from;
  const back = to.length < has.zoom.length, [l, h, k] = has.zoom, panel = $("panel");
  change({zoom: to}, true);
  const origin = !back ? null : to.length ? $("steps").tBodies[0].rows[k]?.querySelector("button") : opener?.isConnected ? opener : panel.querySelector(`[data-head="${l}${h}"]`);
  if (!back && $("inside").getBoundingClientRect().top > innerHeight * .5) $("inside").scrollIntoView({behavior: still.matches ? "auto" : "smooth"});
  (origin || $("h-inside")).focus({preventScroll: !back});
}
function drawInside() {
  const [l, h, k] = has.zoom, depth = has.zoom.length, panel = $("panel"), key = `${depth > 2 ? 2 : depth ? 1 : 0}`, trail = ["the whole model", ...(depth ? [nameOf(l, h)] : []), ...(depth > 2 ? [`${shown(has.place)} · ${shown(k)}`] : [])];
  keep($("trail"), trail, () => make("span"), (node, text, n) => {
    const here = n === trail.length - 1, old = node.querySelector("button");
    if (here) { node.replaceChildren(n ? "› " : "", make("span", {textContent: text, "aria-current": "step"})); return; }
    if (old) old.textContent = text; else node.replaceChildren(n ? "› " : "", make("button", {textContent: text}));
    node.querySelector("button").onclick = () => zoom(has.zoom.slice(0, n ? 2 : 0));
  });
  $("h-inside").textContent = ["From words to the next word", `Inside head (${l}, ${h})`, "One dot product"][depth > 2 ? 2 : depth ? 1 : 0];
  $("play").hidden = depth > 0;
  if (panel.dataset.level !== key) { panel.dataset.level = key; panel.replaceChildren(); panel.style.animation = "none"; void panel.offsetWidth; panel.style.animation = ""; }
  if (depth > 2) drawProduct(l, h, k); else if (depth) drawHead(l, h); else drawScene();
}
// A vector as a strip: blue above zero, orange below it; four strengths each.
function strip(vector, x, y, width, height, extra = {}) {
  const most = Math.max(...vector.map(Math.abs)) || 1, s = width / vector.length, paths = {};
  vector.forEach((v, i) => { const n = Math.round(4 * v / most); if (n) (paths[n] = paths[n] || []).push(`M${(x + i * s).toFixed(2)} ${y}h${s.toFixed(2)}v${height}h${-s.toFixed(2)}z`); });
  return svg("g", extra, svg("rect", {x, y, width, height, class: "box"}), ...Object.entries(paths).map(([n, path]) => svg("path", {d: path.join(""), class: n > 0 ? "plusc" : "minusc", "fill-opacity": Math.abs(n) / 4})));
}
function drawScene() {
  const panel = $("panel"), W = panel.clientWidth, phone = W < 760, tiny = W < 480, T = ids.length, i = has.place, rh = Math.max(17, Math.min(27, 400 / T)), top = phone ? 30 : 52, held = document.activeElement?.dataset?.head;
  const y = t => top + rh * (t + .5), bottom = top + rh * T, yi = y(i), sh = Math.max(7, rh * .5), word = tiny ? 68 : phone ? 80 : 104, sw = tiny ? 26 : phone ? 50 : 64, later = tiny ? 0 : sw, gap = tiny ? 7 : phone ? 9 : 18;
  const right = phone ? W - 20 : W - Math.max(210, W * .23), mlp = tiny ? 16 : 26, free = right - word - sw - 2 * later - 2 * mlp - (tiny ? 4 : 6) * gap, zone = free / 2;
  const x0 = word, xa = x0 + sw + gap, xm0 = xa + zone + gap, x1 = xm0 + mlp + (tiny ? 0 : gap), xb = x1 + later + gap, xm1 = xb + zone + gap, x2 = xm1 + mlp + (tiny ? 0 : gap), end = x2 + later;
  const parts = [], at = (seconds, set = {}) => ({...set, class: `${set.class || ""} in`, "--at": `${seconds}s`});
  const lens = result.streams.map(x => { const share = softmax(readOff(model, x[i])), best = share.reduce((a, s, id) => id > 2 && s > share[a] ? id : a, 3); return [words[best], share[best]]; });
  const title = (x, text, second, seconds, anchor = "middle") => parts.push(svg("g", at(seconds), svg("text", {x, y: 14, "text-anchor": anchor, class: phone ? "small" : ""}, text), ...second && !phone ? [svg("text", {x, y: 31, "text-anchor": anchor, class: "small"}, second)] : []));
  title(word - (phone ? 8 : 36), "words", "", 0, "end");
  if (!phone) { title(x0 + sw / 2, "64 numbers", `says ${lens[0][0]} ${lens[0][1].toFixed(2)}`, .8); title(x1 + sw / 2, "so far", `says ${lens[1][0]} ${lens[1][1].toFixed(2)}`, 2.7); title(x2 + sw / 2, "at the end", `says ${lens[2][0]} ${lens[2][1].toFixed(2)}`, 4.1); }
  title(xa + zone / 2, phone ? "layer 0" : "layer 0: four heads", "", 1.4); title(xb + zone / 2, phone ? "layer 1" : "layer 1: four heads", "", 2.8);
  title(xm0 + mlp / 2, "MLP", "", 2.3); title(xm1 + mlp / 2, "MLP", "", 3.6);
  for (let t = 0; t < T; t++) {
    const unseen = has.mask && t > i, seconds = .65 * t / T;
    parts.push(svg("path", {class: `road${t === i ? " ask" : unseen ? " dim" : ""}`, d: `M${x0} ${y(t)}H${t === i ? end : phone ? right : end}`}));
    parts.push(svg("text", at(seconds, {x: word - 8, y: y(t) + 4.5, "text-anchor": "end", class: t === i ? "ask" : unseen ? "dim" : t ? "" : "small"}), shown(t)));
    parts.push(strip(result.streams[0][t], x0, y(t) - sh / 2, sw, sh, at(.8 + .4 * t / T, {class: unseen ? "dim" : ""})));
  }
  for (const [l, from, seconds] of [[0, xa, 1.4], [1, xb, 2.8]]) for (let h = 0; h < 4; h++) {
    const {weights} = result.heads[l][h], step = zone / 4, x = from + step * (h + .8), on = used(l, h), best = weights[i].indexOf(Math.max(...weights[i]));
    if (on) weights[i].forEach((a, j) => { if (a > .03 && j !== i) parts.push(svg("path", {class: "flow", pathLength: 1, "--at": `${seconds + .12 * h}s`, stroke: colour(l, h), "stroke-width": .8 + (phone ? 5 : 7) * a, opacity: .3 + .6 * a,
      d: `M${x - step * .75} ${y(j)}C${x} ${y(j)} ${x} ${(y(j) + yi) / 2} ${x} ${yi}`})); });
    const r = phone ? 7 : 9;
    parts.push(svg("g", at(seconds, {role: "button", tabindex: 0, "data-head": `${l}${h}`, "aria-label": `Look inside head (${l}, ${h})${on ? "" : ", which is off"}. ${shown(i)} looks most at ${shown(best)}.`,
      onclick: event => zoom([l, h], event.currentTarget), onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom([l, h], event.currentTarget); } }}),
      svg("circle", {cx: x, cy: yi, r: r + 7, fill: "transparent"}), svg("circle", {cx: x, cy: yi, r, fill: on ? colour(l, h) : "var(--page)", stroke: colour(l, h), "stroke-width": 2}),
      svg("text", {x, y: yi + 3.8, "text-anchor": "middle", style: `font-size:${phone ? 10 : 11}px;font-weight:700;fill:${on ? "var(--page)" : colour(l, h)};pointer-events:none`}, h)));
  }
  for (const [l, x, seconds] of [[0, xm0, 2.3], [1, xm1, 3.6]]) {  // 128 cells, sixteen rows of eight
    const inner = result.inner[l][i], most = Math.max(...inner) || 1, high = Math.min(mlp * 2, rh * 2.2), w = mlp / 8, tall = high / 16, on = !has.layersOff.has(l);
    parts.push(svg("g", at(seconds, {class: on ? "" : "dim"}), svg("rect", {x: x - 2, y: yi - high / 2 - 2, width: mlp + 4, height: high + 4, rx: 3, class: "box ask"}), ...[1, 2, 3].map(n => svg("path", {class: "plusc", "fill-opacity": n / 3,
      d: inner.map((a, c) => a > 0 && Math.min(3, Math.ceil(3 * a / most)) === n ? `M${x + c % 8 * w} ${yi - high / 2 + Math.floor(c / 8) * tall}h${w}v${tall}h${-w}z` : "").join("")}))));
  }
  if (!tiny) parts.push(strip(result.streams[1][i], x1, yi - sh * .7, sw, sh * 1.4, at(2.7)), strip(result.streams[2][i], x2, yi - sh * .7, sw, sh * 1.4, at(4.1)));
  const top5 = p.map((a, id) => [a, id]).filter(([, id]) => id > 2).sort((a, b) => b[0] - a[0]).slice(0, 5), bx = phone ? 96 : end + 84, bw = (phone ? W : W - 4) - bx - 46, size = phone ? 22 : 25;
  const mid = (top + bottom) / 2, by = phone ? bottom + 40 : Math.max(top, Math.min((yi + mid) / 2 - 2.5 * size, Math.max(bottom, top + 5 * size) - 5 * size)), height = Math.max(bottom + 8, by + 5 * size + 6);
  top5.forEach(([a, id], n) => { const v = by + (n + .5) * size, seconds = 4.1 + .04 * n;
    if (!phone) parts.push(svg("path", {class: "flow", pathLength: 1, "--at": `${seconds}s`, stroke: "var(--model)", "stroke-width": .8 + 6 * a, opacity: .25 + .6 * a, d: `M${end} ${yi}C${end + 20} ${yi} ${end} ${v} ${end + 22} ${v}`}));
    parts.push(
      svg("g", at(seconds), svg("text", {x: bx - 6, y: v + 4.5, "text-anchor": "end", class: n ? "" : "ask"}, words[id]), svg("rect", {x: bx, y: v - 6, width: Math.max(1, bw * a), height: 12, rx: 2, class: "bar0"}), svg("text", {x: bx + bw * a + 6, y: v + 4.5, class: "small"}, three(a)))); });
  if (phone) parts.push(svg("path", {class: "flow", pathLength: 1, "--at": "4.1s", stroke: "var(--model)", "stroke-width": 3, d: `M${end} ${yi}H${W - 9}q6 0 6 6V${by - 20}q0 6 -6 6H${bx + 8}q-6 0 -6 6V${by - 3}`}));
  const scene = svg("svg", {class: "scene", viewBox: `0 0 ${W} ${height}`, height, role: "group", "aria-label": "The model as a picture: the steps below say what it shows."}, ...parts), old = panel.querySelector(".scene");
  if (old) old.replaceWith(scene); else panel.append(scene, make("ol", {id: "stages"}));
  if (held) scene.querySelector(`[data-head="${held}"]`)?.focus({preventScroll: true});
  const strongest = l => { let best = [0]; result.heads[l].forEach((head, h) => head.weights[i].forEach((a, j) => { if (used(l, h) && a > best[0]) best = [a, h, j]; })); return best; };
  const told = l => { const [a, h, j] = strongest(l); return has.layersOff.has(l) ? `Layer ${l} is switched off, so nothing is added.` : !a ? "All four are off." : `${nameOf(l, h)[0].toUpperCase()}${nameOf(l, h).slice(1)} takes ${a.toFixed(2)} of its value from ${j === i ? "the word itself" : called(shown(j))}.`; };
  const lit = l => has.layersOff.has(l) ? "Switched off." : `${result.inner[l][i].filter(a => a > 0).length} of its 128 cells are on; what they say is added too.`;
  keep($("stages"), [`Words: ${T === 1 ? "only the mark of the beginning, BOS" : `${T - 1}, and BOS, the mark of the beginning`}. The thick road is that of ${called(shown(i))}.`, "Each becomes 64 numbers: its own, plus those of its place.",
    `Heads look along the roads and add what they find. ${told(0)}`, `The MLP looks at this one word. ${lit(0)}`, `Once more with what was found. ${told(1)} ${lit(1)}`, `The end of the road, read off: ${called(lens[2][0])}. Read off earlier, it would have been ${called(lens[0][0])}, then ${called(lens[1][0])}.`],
  (_, n) => make("li", {"--at": `${[0, .8, 1.4, 2.3, 2.8, 4.1][n]}s`}), (node, text) => { node.textContent = text; });
}
let playing = null;
function play() {
  const panel = $("panel");
  clearTimeout(playing); panel.classList.remove("play"); void panel.offsetWidth;
  panel.classList.add("play");
  playing = setTimeout(() => panel.classList.remove("play"), 5000);
}
let cursor = null, mapAt = null;
function drawHead(l, h) {
  const panel = $("panel"), {products, scores, weights, v, q} = result.heads[l][h], T = ids.length, i = has.place, dk = q[0].length;
  if (!panel.children.length) {
    const picture = svg("svg", {tabindex: 0, role: "img"}), find = event => { const r = picture.getBoundingClientRect(), n = (v, from) => Math.min(ids.length - 1, Math.max(0, Math.floor((v * mapAt.W / r.width - from) / mapAt.s)));
      return [n(event.clientY - r.top, mapAt.top), n(event.clientX - r.left, mapAt.left)]; };
    fit(picture, {onpointermove: event => point(...find(event)), onpointerleave: () => point(null), onfocus: () => { if (!cursor) point(has.place, has.place); }, onblur: () => point(null)});
    picture.onclick = event => open(...find(event));
    picture.onkeydown = event => {
      const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key], hold = v => Math.min(ids.length - 1, Math.max(0, v)), [a, b] = cursor || [has.place, has.place];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(a, b); }
      if (!step) return;
      event.preventDefault(); point(hold(a + step[0]), hold(b + step[1]));
    };
    panel.append(make("div", {className: "two"}, make("div", {className: "big"}, picture, make("p", {id: "at", className: "soft", role: "status"})), make("div", {}, make("p", {id: "lead"}),
      make("div", {className: "wide", tabIndex: 0, role: "region", "aria-label": "The numbers of one query"}, make("table", {className: "steps", id: "steps"})))));
  }
  panel.style.setProperty("--head", colour(l, h));
  const picture = panel.querySelector(".big svg"), W = 400, font = T > 30 ? 7 : T > 20 ? 9 : 12, side = font * 5.6, s = (W - side) / T;
  mapAt = {W, s, left: side, top: side};
  picture.setAttribute("viewBox", `0 0 ${W} ${W}`);
  picture.setAttribute("aria-label", `The map of head (${l}, ${h}): rows ask, columns are looked at. Arrow keys read each weight, Enter opens its dot product.`);
  picture.replaceChildren(svg("g", {"shape-rendering": "crispEdges"}, ...cells(weights, side, side, s, colour(l, h))), ...ids.flatMap((_, t) => { const m = side + (t + .5) * s, set = {style: `font-size:${font}px;font-weight:${t === i ? 700 : 400}`};
    return [svg("text", {...set, x: side - 4, y: m + font * .35, "text-anchor": "end"}, shown(t)), svg("text", {style: `font-size:${font}px`, transform: `translate(${m + font * .35} ${side - 4}) rotate(-90)`}, shown(t))]; }),
    svg("rect", {class: "asks", x: side, y: side + i * s, width: W - side - 1, height: s, "stroke-width": 1.5}), svg("rect", {class: "asks cursor", width: s, height: s, "stroke-width": 3, visibility: "hidden"}));
  if (!used(l, h)) picture.style.opacity = .35; else picture.style.opacity = 1;
  point(cursor && Math.max(...cursor) < T ? cursor[0] : null, cursor?.[1]);
  const first = x => x.slice(0, 2).map(number).join(", ") + ", …";
  $("lead").textContent = `${shown(i)} asks with ${dk} numbers: ${q[i].slice(0, 4).map(number).join(", ")}, … Their dot product with each key is ` +
    `${has.scale ? `divided by √${dk} = ${Math.sqrt(dk)}` : "taken as it is"}, and the softmax turns these scores into weights. Press a key to see its dot product.${used(l, h) ? "" : " This head is switched off, so nothing of it is used."}`;
  const seen = scores[i].map((_, j) => j).filter(j => scores[i][j] > -Infinity), most = Math.max(...seen.map(j => scores[i][j])), table = $("steps");
  if (!table.tBodies.length) table.append(make("thead", {}, make("tr", {}, ...["key", "q · k", "score", "exp(score − largest)", "weight", "value", "weight × value"].map(text => make("th", {scope: "col", textContent: text})))), make("tbody"), make("tfoot"));
  keep(table.tBodies[0], ids, () => make("tr", {}, make("td", {}, make("button")), ...Array.from({length: 6}, () => make("td"))), (tr, _, j) => {
    const may = scores[i][j] > -Infinity, button = tr.querySelector("button"), texts = may ? [number(products[i][j]), number(scores[i][j]), three(Math.exp(scores[i][j] - most)), three(weights[i][j]), first(v[j]), first(v[j].slice(0, 2).map(x => x * weights[i][j]))] : ["hidden", "−∞", "0", "0", "", ""];
    tr.className = may ? "" : "unseen-key"; button.textContent = shown(j); button.disabled = !may; button.onclick = event => zoom([l, h, j], event.currentTarget);
    texts.forEach((text, n) => { tr.cells[n + 1].textContent = text; });
    tr.cells[4].className = "share";
    if (may) tr.cells[4].append(make("i", {style: `width:calc(${100 * weights[i][j]}% - 4px)`}));
  });
  const out = v[0].map((_, n) => seen.reduce((sum, j) => sum + weights[i][j] * v[j][n], 0)), cell = textContent => make("td", {textContent});
  table.tFoot.replaceChildren(make("tr", {}, ...["sum", "", "", three(seen.reduce((sum, j) => sum + Math.exp(scores[i][j] - most), 0)), "1.000", "", first(out)].map(cell)));
  function point(a, b) {
    const box = panel.querySelector(".cursor"), [l, h] = has.zoom;
    cursor = a === null || a === undefined ? null : [a, b];
    box.setAttribute("visibility", cursor ? "visible" : "hidden");
    if (!cursor) { $("at").textContent = "Move over the map, or focus it and use the arrow keys."; return; }
    box.setAttribute("x", mapAt.left + b * mapAt.s); box.setAttribute("y", mapAt.top + a * mapAt.s);
    $("at").textContent = `Head (${l}, ${h}): ${shown(a)} (${a}) ` + (has.mask && b > a ? `may not see ${shown(b)} (${b}).` : `gives ${shown(b)} (${b}) the weight ${three(result.heads[l][h].weights[a][b])}.`);
  }
  function open(a, b) {
    const [l, h] = has.zoom;
    if (has.mask && b > a) return point(a, b);
    has.place = a; cursor = null;
    zoom([l, h, b], panel.querySelector(".big svg"));
  }
}
function drawProduct(l, h, k) {
  const panel = $("panel"), i = has.place, {q, k: keys, products, scores, weights, v} = result.heads[l][h], dk = q[0].length, each = q[i].map((a, n) => a * keys[k][n]), most = Math.max(...each.map(Math.abs)) || 1;
  panel.style.setProperty("--head", colour(l, h));
  if (!panel.children.length) panel.append(make("p", {id: "lead"}), make("div", {className: "two"}, make("div", {className: "wide", tabIndex: 0, role: "region", "aria-label": "The products, number by number"}, make("table", {className: "steps", id: "products"},
    make("thead", {}, make("tr", {}, ...["number", "query", "key", "product", "as a bar", "sum so far"].map(textContent => make("th", {scope: "col", textContent})))), make("tbody"))), make("ol", {className: "sum"})));
  $("lead").textContent = `How well does the query of ${shown(i)} fit the key of ${shown(k)}? Where both numbers are large and of one sign, their product is large; the ${dk} products are added.`;
  let sum = 0;
  keep(panel.querySelector("tbody"), each, (_, n) => make("tr", {}, make("td", {textContent: n + 1}), make("td"), make("td"), make("td"), make("td", {className: "product", "aria-hidden": "true"}, make("i")), make("td")), (tr, a, n) => {
    sum += a;
    [number(q[i][n]), number(keys[k][n]), number(a)].forEach((text, c) => { tr.cells[c + 1].textContent = text; });
    tr.cells[5].textContent = number(sum);
    const bar = tr.querySelector("i"), wide = 48 * Math.abs(a) / most;
    bar.style.cssText = `width:${wide}%;left:${a < 0 ? 50 - wide : 50}%;background:var(--${a < 0 ? "minus" : "plus"})`;
  });
  const row = scores[i], top = Math.max(...row), total = row.reduce((s, x) => s + Math.exp(x - top), 0), rival = row.indexOf(top);
  keep(panel.querySelector(".sum"), [[number(products[i][k]), `the dot product: the sum of ${dk} products`], [number(row[k]), has.scale ? `the score: divided by √${dk} = ${Math.sqrt(dk)}` : "the score: not divided, as you wished"],
    [three(Math.exp(row[k] - top)), rival === k ? "e to the score, less the largest one, which is this" : `e to the score, less the largest one, ${number(top)} of ${shown(rival)}`],
    [three(weights[i][k]), `the weight: its share of the sum of all, ${three(total)}`], [number(weights[i][k] * v[k][0]), `what of the value of ${shown(k)} is added: ${three(weights[i][k])} times each of its ${dk} numbers, here the first, ${number(v[k][0])}`]],
  () => make("li", {}, make("strong"), make("span")), (li, [value, text]) => { li.firstChild.textContent = value; li.lastChild.textContent = text; });
}
// ---------------------------------------------------------------- dares, switches, the words it knows
const likeliest = () => p.reduce((best, share, id) => id > 2 && share > p[best] ? id : best, 3);
const oneHeadOff = () => has.off.size === 1 && has.mask && has.scale && !has.layersOff.size, saysAfter = (text, test) => upToHere().join(" ") === text && test(words[likeliest()]);
function nounAndVerb() {  // one sentence of the grammar's, and a word in it that is followed by "the" for certain, once, and once is not
  const all = ids.slice(1, ids.at(-1) === stop() ? -1 : undefined), the = words.indexOf("the"), both = facts.kinds.find(([kind]) => kind === "nouns and verbs")[1].map(word => words.indexOf(word));
  const verb = t => { const ways = edges[stateAfter(edges, [1, ...all.slice(0, t + 1)], stop())]; return ways && ways[the] !== undefined && ways[the][0] === 1; };
  if (all.includes(stop()) || stateAfter(edges, [1, ...all], stop()) < 0) return false;
  return both.some(id => new Set(all.flatMap((word, t) => word === id ? [verb(t)] : [])).size === 2);
}
const DARES = {
  ben: {text: "Switch off one head so that Ben is thanked, and not Anna.", stage: THANKS, met: () => oneHeadOff() && saysAfter(THANKS, word => word === "ben")},
  bears: {text: "Switch off one head so that she no longer bears a load or a pain but something that nobody bears.", stage: "she bears the", met: () => oneHeadOff() && saysAfter("she bears the", word => !["load", "pain"].includes(word))},
  twice: {text: "Write one sentence that the grammar allows in which the same word is a noun once and a verb once.", stage: "the king with the", met: nounAndVerb},
};
function drawDares() {
  for (const [name, {met}] of Object.entries(DARES)) if (met()) done.add(name);
  try { localStorage.setItem("dares", JSON.stringify([...done])); } catch { /* a page in a frame keeps nothing */ }
  keep($("dares"), Object.entries(DARES), ([, {stage}]) => make("li", {}, make("span", {className: "mark", role: "img"}), make("div", {}, make("span"), " ", ...stage === undefined ? [] : [make("button", {textContent: "Begin here", onclick: () => { hush(); asNew(); change({text: stage}); }})])), (li, [name, {text}]) => {
    li.classList.toggle("done", done.has(name)); li.firstChild.textContent = done.has(name) ? "✓" : ""; li.firstChild.setAttribute("aria-label", done.has(name) ? "done" : "not yet done");
    li.lastChild.firstChild.textContent = text;
  });
}
function drawSwitches() {
  $("mask").checked = has.mask; $("scale").checked = has.scale; $("layer0").checked = !has.layersOff.has(0); $("layer1").checked = !has.layersOff.has(1);
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
  const field = $("text"), {prefix, may} = begun(field.value), text = may.includes(word) && (typing || words.indexOf(prefix) < 3) ? field.value.slice(0, field.value.length - prefix.length) : field.value.trimEnd() && `${field.value.trimEnd()} `;
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
    else if (event.key === "Enter" && list.length && (chosen >= 0 || words.indexOf(begun(field.value).prefix) < 3)) { event.preventDefault(); take(list[Math.max(0, chosen)]); }
    else if (event.key === "Escape") { typing = false; chosen = -1; complete(); }
  };
  $("back").onclick = () => { hush(); typing = false; change({text: wordsOf(has.text).slice(0, -1).join(" ")}); complete(); };
  $("examples").append(...Object.entries(EXAMPLES).map(([name, text]) => make("button", {textContent: name, onclick: () => { hush(); change({text}); }})));
  $("known").querySelector("summary").textContent = `The ${words.length - 3} words that it knows`;
  $("known").querySelector("dl").append(...facts.kinds.flatMap(([kind, list]) => [make("dt", {textContent: kind}), make("dd", {}, ...list.map(word => make("button", {textContent: word, onpointerdown: event => event.preventDefault(), onclick: () => take(word)})))]));
  $("one").onclick = nextWord; $("on").onclick = writeOn; $("other").onclick = () => { hush(); another(); }; $("play").onclick = play;
  for (const id of ["mask", "scale"]) $(id).onchange = () => change({[id]: $(id).checked});
  for (const l of [0, 1]) $(`layer${l}`).onchange = () => { const layersOff = new Set(has.layersOff); $(`layer${l}`).checked ? layersOff.delete(l) : layersOff.add(l); change({layersOff}); };
  $("heat").oninput = () => change({heat: Number($("heat").value)});
  $("reset").onclick = () => { asNew(); change({}); };
  $("copy").onclick = async () => { try { await navigator.clipboard.writeText(`${location.href.split("#")[0]}#${address()}`); $("copied").textContent = "copied"; } catch { $("copied").textContent = "it is in the browser's address line"; } };
  $("copy").hidden = parent !== window;
}
// ---------------------------------------------------------------- the address, and what is around the page
function address() {
  const set = new URLSearchParams({text: has.text.trim()});
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
function go(hash) {  // what an address holds; what it holds wrongly is passed over
  const get = new URLSearchParams(hash.replace(/^#/, "")), [l, h, k] = (get.get("zoom") || "").split(".").map(Number), within = (n, end) => Number.isInteger(n) && n >= 0 && n < end;
  const {n_layers: L, n_heads: H} = model.about.settings, heat = Number(get.get("temperature")), list = name => (get.get(name) || "").split(" ");
  Object.assign(has, {off: new Set(list("off").map(name => name.replace(".", ",")).filter(name => new RegExp(`^[0-${L - 1}],[0-${H - 1}]$`).test(name))),
    layersOff: new Set(list("without").filter(Boolean).map(Number).filter(l => within(l, L))), mask: get.get("mask") !== "off", scale: get.get("scale") !== "off", heat: heat >= .1 && heat <= 3 ? heat : 1,
    zoom: get.get("zoom") && within(l, L) && within(h, H) ? within(k, 64) ? [l, h, k] : [l, h] : [], place: 0});
  const text = get.get("text") ?? (compact ? SHORT : THANKS), asks = get.get("asks");
  if (asks !== null && within(Number(asks), 64)) { has.place = Number(asks); change({text}, true); } else change({text});
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
  const [weights, states] = await Promise.all([unpack(facts.weights), unpack(facts.grammar)]);
  model = readSafetensors(weights); edges = readGrammar(states, facts.shares); words = model.about.vocabulary;
  try { done = new Set(JSON.parse(localStorage.getItem("dares") || "[]")); } catch { /* a page in a frame keeps nothing */ }
  $("page").hidden = false;
  listen(); settle(); go(location.hash);
  sweep();
  window.explainer = {run: (ids, options) => run(model, ids, options), ready: true,
    exact: ids => { const found = edges[stateAfter(edges, ids, stop())] || {}; return words.map((_, id) => found[id] ? found[id][0] : 0); }};
  parent.postMessage({ready: true}, "*");
}
start().catch(error => { $("failed").hidden = false; $("failed").textContent = `This page could not start (${error.message}). It needs a browser of 2023 or newer.`; throw error; });
