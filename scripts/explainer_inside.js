// Inside: from the whole model to one product in five steps, and the story of the sentence in seven scenes.
// ---------------------------------------------------------------- in and out
// has.zoom is [layer, head, key, number]; as many of them as there are steps in.
let opener = null, entry = 0;  // what was pressed to come in, and how deep the first step from a map led
const low = n => String(n).replace(/\d/g, digit => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const some = (x, n = 3) => `(${Array.from(x.slice(0, n), number).join(", ")}, …)`;
const saysHere = v => { const shares = softmax(readOff(model, v)), best = likeliest(shares); return [model.name(best), shares[best]]; };
function steps([l, h, k, n]) {  // the names of the steps from outside to here
  const names = ["the whole model"];
  if (l !== undefined) names.push(`layer ${l}`);
  if (h !== undefined) names.push(nameOf(l, h));
  if (k !== undefined) names.push(`${shown(has.place)} · ${shown(k)}`);
  if (n !== undefined) names.push(`number ${n + 1}`);
  return names;
}
function zoom(to, from = null) {
  if (from) { opener = from; if (from.closest("#maps")) entry = to.length; }
  const back = to.length < has.zoom.length, planes = $("panel").querySelector(".planes"), last = has.zoom.at(-1);
  const arrive = () => {
    $("panel").dataset.way = back ? "out" : "in";
    change({zoom: to}, true);
    const origin = !back ? null : opener?.isConnected && to.length !== 3 ? opener : $("panel").querySelector(`[data-key="${last}"]`);
    if (!back && $("inside").getBoundingClientRect().top > innerHeight * .5) $("inside").scrollIntoView({behavior: still.matches ? "auto" : "smooth"});
    (origin || $("h-inside")).focus({preventScroll: !back});
    if (back) opener = null;
  };
  if (planes && to.length === 1 && !still.matches) { part(to[0], 150, true); setTimeout(arrive, 380); } else arrive();
}
function part(l, distance, away = false) {  // the planes above and below one make room for it
  for (const plane of $("panel").querySelectorAll(".plane")) {
    const side = Math.sign(l - plane.dataset.key);
    plane.style.transform = distance && side ? `translateY(${side * distance}px)` : "";
    plane.style.opacity = away && side ? 0 : "";
  }
}
function drawInside() {
  const depth = has.zoom.length, panel = $("panel"), trail = steps(has.zoom);
  keep($("trail"), trail, () => make("span"), (node, text, n) => {
    const here = n === depth, old = node.querySelector("button");
    if (here) { node.replaceChildren(n ? "› " : "", make("span", {textContent: text, "aria-current": "step"})); return; }
    if (!old) node.replaceChildren(n ? "› " : "", make("button"));
    fit(node.querySelector("button"), {textContent: text, onclick: () => zoom(has.zoom.slice(0, n))});
  });
  const [l, h] = has.zoom;
  $("h-inside").textContent = ["From the whole to one number", `Inside layer ${l}`, `Inside head (${l}, ${h})`, "One weight", "One product"][depth];
  $("out").hidden = !depth;
  if (depth > 1) panel.style.setProperty("--head", colour(l, h));
  if (panel.dataset.depth !== String(depth)) {
    panel.dataset.depth = depth; panel.replaceChildren();
    panel.style.animation = "none"; void panel.offsetWidth; panel.style.animation = "";
  }
  [drawPlanes, drawLayer, drawHead, drawWeight, drawProduct][depth](...has.zoom);
}
function told(lead, laws) {  // what one sees, and under it pairs: a formula, today's numbers
  $("lead").textContent = lead;
  $("formula").replaceChildren(...laws.map(([law, numbers]) => make("div", {}, make("code", {textContent: law}), make("span", {textContent: numbers}))));
}
function redraw(panel, ...nodes) {  // all of it anew; what had the focus keeps it
  const key = panel.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  panel.replaceChildren(...nodes);
  if (key !== undefined) panel.querySelector(`[data-key="${key}"]`)?.focus({preventScroll: true});
}
const pressed = act => ({onclick: act, onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(event); } }});

// A vector as cells in rows: blue above zero, orange below it; four strengths each. ``count``: only the first ones.
function mosaic(vector, x, y, columns, cell, {count = vector.length, tall = cell, ...set} = {}) {
  const most = Math.max(...vector.map(Math.abs)) || 1, paths = {}, rows = Math.ceil(vector.length / columns);
  vector.slice(0, count).forEach((v, n) => {
    const strength = Math.round(4 * v / most);
    if (strength) (paths[strength] ||= []).push(`M${x + n % columns * cell} ${y + Math.floor(n / columns) * tall}h${cell}v${tall}h${-cell}z`);
  });
  return svg("g", set, svg("rect", {x, y, width: columns * cell, height: rows * tall, class: "box"}), ...Object.entries(paths)
    .map(([n, path]) => svg("path", {d: path.join(""), class: n > 0 ? "plusc" : "minusc", "fill-opacity": Math.abs(n) / 4})));
}

const streak = v => svg("svg", {viewBox: "0 0 320 20", preserveAspectRatio: "none", class: "streak", "aria-hidden": "true"}, mosaic(v, 0, 0, v.length, 320 / v.length, {tall: 20}));

// ---------------------------------------------------------------- step 0: the whole model, a plane for each layer
function drawPlanes() {
  const panel = $("panel"), W = Math.max(280, panel.clientWidth), phone = W < 640, T = ids.length, i = has.place, L = result.layers.length, H = sizes().n_heads;
  const side = phone ? 0 : 190, S = phone ? 22 : 46, D = phone ? 24 : 36, gap = phone ? 112 : L > 2 ? 112 : 136, top = 92;
  const from = S + 4, to = W - side - S - 4, step = (to - from) / T, x = t => from + (t + .5) * step;
  const level = l => top + (L - 1 - l) * gap + D, floor = top + (L - 1) * gap + 2 * D + (phone ? 44 : 32), tilted = step < 58, parts = [];
  const at = (l, u, v) => `${(u + S * v).toFixed(1)} ${(level(l) - D * v).toFixed(1)}`, seen = t => !has.mask || t <= i;
  const says = result.streams.map(x => saysHere(x[i]));
  // the ground: the tokens, each with its numbers
  const ground = svg("g", {});
  ids.forEach((id, t) => {
    const set = {class: `${t === i ? "ask" : t ? "" : "small"}${seen(t) ? "" : " dim"}`, x: x(t), y: floor + 54};
    ground.append(svg("path", {class: `road${t === i ? " ask" : ""}${seen(t) ? "" : " dim"}`, d: `M${x(t)} ${floor}V${level(0)}`}));
    const wide = Math.min(16, step * .62);
    ground.append(mosaic(result.streams[0][t], x(t) - wide / 2, floor, 4, wide / 4, {tall: 36 / Math.ceil(sizes().d / 4), class: seen(t) ? "" : "dim"}));
    ground.append(svg("text", tilted ? {...set, x: 0, y: 0, transform: `translate(${x(t) + 4} ${floor + 48}) rotate(-58)`, "text-anchor": "end"}
      : {...set, "text-anchor": "middle"}, shown(t)));
  });
  if (!phone) ground.append(svg("text", {x: W - side + 16, y: floor + 12}, `${sizes().d} numbers each`), svg("text", {x: W - side + 16, y: floor + 30, class: "small"}, `here it would say ${says[0][0]} ${says[0][1].toFixed(2)}`));
  parts.push(ground);
  result.layers.forEach(({heads, inner}, l) => {
    const on = !has.layersOff.has(l), y = level(l), above = l === L - 1 ? y - D - 36 : level(l + 1);
    const plane = svg("g", {class: `plane${on ? "" : " off"}`, role: "button", tabindex: 0, "data-key": l,
      "aria-label": `Look inside layer ${l}: ${H} heads and an MLP${on ? "" : ", switched off"}. After it ${called(shown(i))} would be followed by ${says[l + 1][0]}, ${says[l + 1][1].toFixed(2)}.`,
      ...pressed(() => zoom([l], $("panel").querySelector(`.plane[data-key="${l}"]`))), onpointerenter: () => part(l, 9), onpointerleave: () => part(l, 0)});
    plane.append(svg("path", {class: "sheet", d: `M${at(l, from, -1)}L${at(l, to, -1)}L${at(l, to, 1)}L${at(l, from, 1)}Z`}));
    if (on) heads.forEach(({weights}, h) => { if (used(l, h)) weights[i].forEach((a, j) => {
      if (a < .05 || j === i) return;
      const far = Math.min(.9, .25 + Math.abs(x(i) - x(j)) / (to - from) * .5 + h % 2 * .18) * (h < H / 2 ? 1 : -1);
      plane.append(svg("path", {class: "flow", stroke: colour(l, h), "stroke-width": .8 + 7 * a, opacity: .3 + .65 * a, d: `M${at(l, x(j), 0)}Q${at(l, (x(i) + x(j)) / 2, 2 * far)} ${at(l, x(i), 0)}`}));
    }); });
    ids.forEach((_, t) => plane.append(svg("circle", {cx: x(t), cy: y, r: t === i ? 5 : Math.min(2.5, step / 3), class: `site${t === i ? " ask" : ""}${seen(t) ? "" : " dim"}`})));
    ids.forEach((_, t) => { if (t === i || l < L - 1) plane.append(svg("path", {class: `road${t === i ? " ask" : ""}${seen(t) ? "" : " dim"}`, d: `M${x(t)} ${y}V${above}`})); });
    const cells = inner[i].filter(a => a > 0).length, mlp = l === L - 1 ? y - D - 18 : (y - D + level(l + 1) + D) / 2;
    plane.append(svg("rect", {x: x(i) - 19, y: mlp - 9, width: 38, height: 18, rx: 5, class: "box ask"}), svg("text", {x: x(i), y: mlp + 4, "text-anchor": "middle", class: "small"}, "MLP"));
    const label = phone ? {x: from - S, y: y + D + 17} : {x: W - side + 16, y: y - 8};
    plane.append(svg("text", {...label, class: "ask"}, `layer ${l}`), svg("text", phone ? {x: label.x + 56, y: label.y, class: "small"} : {x: label.x, y: y + 10, class: "small"},
      `${phone ? "then" : "then it would say"} ${says[l + 1][0]} ${says[l + 1][1].toFixed(2)}`));
    if (!phone) plane.append(svg("text", {x: label.x, y: y + 27, class: "small"}, on ? `${cells} of ${inner[i].length} MLP cells on` : "switched off"));
    parts.push(plane);
  });
  const best = likeliest(p), anchor = x(i) > W * .6 ? "end" : x(i) < W * .3 ? "start" : "middle";
  parts.push(svg("text", {x: x(i), y: top - 44, "text-anchor": anchor, class: "says"}, `${model.name(best)} ${three(p[best])}`),
    svg("text", {x: x(i), y: top - 65, "text-anchor": anchor, class: "small"}, "comes next:"));
  const high = floor + 62 + (tilted ? Math.max(...ids.map((_, t) => shown(t).length)) * 5.4 : 0);
  redraw(panel, svg("svg", {class: "scene planes", viewBox: `0 0 ${W} ${high}`, height: high, role: "group", "aria-label": "The model: the tokens on the ground, and a plane for each layer. The button of a plane says what the model would say after it."}, ...parts));
  if (panel.dataset.way === "out" && !still.matches) {
    const near = [...panel.querySelectorAll(".plane")];
    near.forEach((plane, l) => { plane.style.transform = `translateY(${(L / 2 - l) * 40}px)`; });
    requestAnimationFrame(() => requestAnimationFrame(() => part(0, 0)));
  }
  panel.dataset.way = "";
  const end = result.streams[L][i];
  told(`Read it upwards: each token begins as ${sizes().d} numbers, and in each layer ${called(shown(i))} takes from the others what its heads point at. Press a layer to go in.`, [
    ["x₀ = E[token] + P[place]", `x₀ of ${shown(i)} = ${some(result.streams[0][i])}`],
    [`x${low(L)} = ${Array.from({length: L}, (_, l) => `layer${low(L - 1 - l)}(`).join("")}x₀${")".repeat(L)}`, `x${low(L)} = ${some(end)}`],
    [`p = softmax(W norm(x${low(L)}) + b)`, `p(${model.name(best)}) = ${three(p[best])}`]]);
}

// ---------------------------------------------------------------- step 1: one layer
function drawLayer(l) {
  const i = has.place, {heads, found, inner, said} = result.layers[l], before = result.streams[l][i], after = result.streams[l + 1][i], middle = add(before, found[i]);
  const [was, is] = [saysHere(before), saysHere(after)], on = inner[i].filter(a => a > 0).length, off = has.layersOff.has(l);
  const stage = (title, picture, text) => make("div", {className: "stage-of"}, make("b", {textContent: title}), picture, make("p", {textContent: text}));
  const cards = heads.map(({weights}, h) => {
    const best = weights[i].indexOf(Math.max(...weights[i])), T = ids.length;
    return make("button", {className: "card", "data-key": h, "--head": colour(l, h), "aria-label": `Look inside head (${l}, ${h})${used(l, h) ? "" : ", which is off"}. ${shown(i)} looks most at ${shown(best)}, ${weights[i][best].toFixed(2)}.`, onclick: event => zoom([l, h], event.currentTarget)},
      svg("svg", {viewBox: `0 0 ${T} ${T}`, "shape-rendering": "crispEdges", "aria-hidden": "true"}, ...cells(weights, 0, 0, 1, colour(l, h)), svg("rect", {class: "asks", x: 0, y: i, width: T, height: 1, "stroke-width": 1.5})),
      make("span", {}, make("b", {textContent: `head ${h}`}), make("small", {textContent: `→ ${shown(best)} ${weights[i][best].toFixed(2)}`})));
  });
  redraw($("panel"), make("div", {className: "stages-of"},
    stage("comes in", streak(before), `The ${before.length} numbers of ${called(shown(i))}. If it stopped here, it would say ${was[0]} ${was[1].toFixed(2)}.`),
    stage("heads look", make("div", {className: "cards"}, ...cards), "Each head sees all tokens up to here and takes a mixture of what they offer. Press one to go in."),
    stage("they add", streak(found[i]), off ? "Nothing: this layer is switched off." : `What the ${heads.length} heads found, put side by side and mixed by W_o.`),
    stage("the MLP works", streak(inner[i]), `It sees this one token. ${on} of its ${inner[i].length} cells are on.`),
    stage("it adds", streak(said[i]), off ? "Nothing." : "What the active cells add."),
    stage("goes out", streak(after), `If it stopped here, it would say ${is[0]} ${is[1].toFixed(2)}.`)));
  told(`One layer, seen from ${called(shown(i))}: it looks at the others, then its MLP works on what it saw; both are added to what it was.`, [
    ["x′ = x + [head₀ … head₃] W_o + b", `the first number: ${number(before[0])} + ${number(found[i][0])} = ${number(middle[0])}`],
    ["x″ = x′ + MLP(norm(x′))", `the first number: ${number(middle[0])} + ${number(said[i][0])} = ${number(after[0])}`]]);
}

// ---------------------------------------------------------------- step 2: one head
let cursor = null, mapAt = null;
function drawHead(l, h) {
  const panel = $("panel"), {products, scores, weights, v, q} = result.layers[l].heads[h], T = ids.length, i = has.place, dk = q[0].length;
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
    panel.append(make("div", {className: "two"}, make("div", {className: "big"}, picture, make("p", {id: "at", className: "soft", role: "status"})), make("div", {},
      make("div", {className: "wide", tabIndex: 0, role: "region", "aria-label": "The numbers of one query"}, make("table", {className: "steps", id: "steps"})))));
  }
  const picture = panel.querySelector(".big svg"), W = 400, font = T > 60 ? 4.5 : T > 30 ? 7 : T > 20 ? 9 : 12, side = font * 5.6, s = (W - side) / T;
  mapAt = {W, s, left: side, top: side};
  picture.setAttribute("viewBox", `0 0 ${W} ${W}`);
  picture.setAttribute("aria-label", `The map of head (${l}, ${h}): rows ask, columns are looked at. Arrow keys read each weight, Enter opens its dot product.`);
  picture.replaceChildren(svg("g", {"shape-rendering": "crispEdges"}, ...cells(weights, side, side, s, colour(l, h))), ...ids.flatMap((_, t) => { const m = side + (t + .5) * s, set = {style: `font-size:${font}px;font-weight:${t === i ? 700 : 400}`};
    return [svg("text", {...set, x: side - 4, y: m + font * .35, "text-anchor": "end"}, shown(t)), svg("text", {style: `font-size:${font}px`, transform: `translate(${m + font * .35} ${side - 4}) rotate(-90)`}, shown(t))]; }),
    svg("rect", {class: "asks", x: side, y: side + i * s, width: W - side - 1, height: s, "stroke-width": 1.5}), svg("rect", {class: "asks cursor", width: s, height: s, "stroke-width": 3, visibility: "hidden"}));
  if (!used(l, h)) picture.style.opacity = .35; else picture.style.opacity = 1;
  point(cursor && Math.max(...cursor) < T ? cursor[0] : null, cursor?.[1]);
  const first = x => x.slice(0, 2).map(number).join(", ") + ", …";
  const seen = scores[i].map((_, j) => j).filter(j => scores[i][j] > -Infinity), most = Math.max(...seen.map(j => scores[i][j])), table = $("steps");
  if (!table.tBodies.length) table.append(make("thead", {}, make("tr", {}, ...["key", "q · k", "score", "exp(score − largest)", "weight", "value", "weight × value"].map(text => make("th", {scope: "col", textContent: text})))), make("tbody"), make("tfoot"));
  keep(table.tBodies[0], ids, () => make("tr", {}, make("td", {}, make("button")), ...Array.from({length: 6}, () => make("td"))), (tr, _, j) => {
    const may = scores[i][j] > -Infinity, button = tr.querySelector("button"), texts = may ? [number(products[i][j]), number(scores[i][j]), three(Math.exp(scores[i][j] - most)), three(weights[i][j]), first(v[j]), first(v[j].slice(0, 2).map(x => x * weights[i][j]))] : ["hidden", "−∞", "0", "0", "", ""];
    tr.className = may ? "" : "unseen-key"; button.textContent = shown(j); button.dataset.key = j; button.disabled = !may; button.onclick = event => zoom([l, h, j], event.currentTarget);
    texts.forEach((text, n) => { tr.cells[n + 1].textContent = text; });
    tr.cells[4].className = "share";
    if (may) tr.cells[4].append(make("i", {style: `width:calc(${100 * weights[i][j]}% - 4px)`}));
  });
  const out = v[0].map((_, n) => seen.reduce((sum, j) => sum + weights[i][j] * v[j][n], 0)), cell = textContent => make("td", {textContent});
  table.tFoot.replaceChildren(make("tr", {}, ...["sum", "", "", three(seen.reduce((sum, j) => sum + Math.exp(scores[i][j] - most), 0)), "1.000", "", first(out)].map(cell)));
  told(`${shown(i)} asks with ${dk} numbers, its query. How well it fits each key becomes a weight; the values, each times its weight, are added. Press a key to see where its weight comes from.${used(l, h) ? "" : " This head is switched off, so nothing of it is used."}`, [
    [`head = softmax(Q Kᵀ${has.scale ? " / √d_k" : ""}) V`, `what ${shown(i)} finds: ${some(out)}`],
    ["q = norm(x) W_q + b", `q of ${shown(i)} = ${some(q[i])}`]]);
  function point(a, b) {
    const box = panel.querySelector(".cursor"), [l, h] = has.zoom;
    cursor = a === null || a === undefined ? null : [a, b];
    box.setAttribute("visibility", cursor ? "visible" : "hidden");
    if (!cursor) { $("at").textContent = "Move over the map, or focus it and use the arrow keys."; return; }
    box.setAttribute("x", mapAt.left + b * mapAt.s); box.setAttribute("y", mapAt.top + a * mapAt.s);
    $("at").textContent = `Head (${l}, ${h}): ${shown(a)} (${a}) ` + (has.mask && b > a ? `may not see ${shown(b)} (${b}).` : `gives ${shown(b)} (${b}) the weight ${three(result.layers[l].heads[h].weights[a][b])}.`);
  }
  function open(a, b) {
    const [l, h] = has.zoom;
    if (has.mask && b > a) return point(a, b);
    has.place = a; cursor = null;
    zoom([l, h, b], panel.querySelector(".big svg"));
  }
}

// ---------------------------------------------------------------- step 3: one weight
function drawWeight(l, h, k) {
  const panel = $("panel"), i = has.place, {q, k: keys, products, scores, weights, v} = result.layers[l].heads[h], dk = q[0].length;
  const each = q[i].map((a, n) => a * keys[k][n]), most = Math.max(...each.map(Math.abs)) || 1, headings = ["number", "query", "key", "product", "as a bar", "sum so far"];
  if (!panel.children.length) panel.append(make("div", {className: "two"},
    make("div", {className: "wide", tabIndex: 0, role: "region", "aria-label": "The products, number by number"}, make("table", {className: "steps", id: "products"},
      make("thead", {}, make("tr", {}, ...headings.map(textContent => make("th", {scope: "col", textContent})))), make("tbody"))), make("ol", {className: "sum"})));
  let sum = 0;
  keep(panel.querySelector("tbody"), each, (_, n) => make("tr", {}, make("td", {}, make("button", {textContent: n + 1, "data-key": n, "aria-label": `look inside product ${n + 1}`})), make("td"), make("td"), make("td"), make("td", {className: "product", "aria-hidden": "true"}, make("i")), make("td")), (tr, a, n) => {
    sum += a;
    [number(q[i][n]), number(keys[k][n]), number(a)].forEach((text, c) => { tr.cells[c + 1].textContent = text; });
    tr.cells[5].textContent = number(sum);
    tr.querySelector("button").onclick = event => zoom([l, h, k, n], event.currentTarget);
    const bar = tr.querySelector("i"), wide = 48 * Math.abs(a) / most;
    bar.style.cssText = `width:${wide}%;left:${a < 0 ? 50 - wide : 50}%;background:var(--${a < 0 ? "minus" : "plus"})`;
  });
  const line = scores[i], top = Math.max(...line), total = line.reduce((s, x) => s + Math.exp(x - top), 0), rival = line.indexOf(top);
  keep(panel.querySelector(".sum"), [[number(products[i][k]), `the dot product: the sum of ${dk} products`], [number(line[k]), has.scale ? `the score: divided by √${dk} = ${Math.sqrt(dk)}` : "the score: not divided, as you wished"],
    [three(Math.exp(line[k] - top)), rival === k ? "e to the score, less the largest one, which is this" : `e to the score, less the largest one, ${number(top)} of ${shown(rival)}`],
    [three(weights[i][k]), `the weight: its share of the sum of all, ${three(total)}`], [number(weights[i][k] * v[k][0]), `what of the value of ${shown(k)} is added: ${three(weights[i][k])} times each of its ${dk} numbers, here the first, ${number(v[k][0])}`]],
  () => make("li", {}, make("strong"), make("span")), (li, [value, text]) => { li.firstChild.textContent = value; li.lastChild.textContent = text; });
  told(`How well does the query of ${shown(i)} fit the key of ${shown(k)}? Where both numbers are large and of one sign, their product is large; the ${dk} products are added. Press one to go in.`, [
    [`score = q · k${has.scale ? " / √d_k" : ""}`, `${number(products[i][k])}${has.scale ? ` / ${number(Math.sqrt(dk))} = ${number(line[k])}` : ""}`],
    ["weight = e^score / Σ e^score", `e^${number(line[k])}, divided by the sum of all = ${three(weights[i][k])}`]]);
}

// ---------------------------------------------------------------- step 4: one product
function drawProduct(l, h, k, n) {
  const i = has.place, {heads, normed} = result.layers[l], {q, k: keys, scores} = heads[h], dk = q[0].length, place = h * dk + n, product = q[i][n] * keys[k][n];
  function factor(letter, name, t, value) {
    const rowOf = row(model.weights[`blocks.${l}.attention.W_${letter}.weight`], place), bias = model.weights[`blocks.${l}.attention.W_${letter}.bias`].data[place];
    const x = normed[t], each = x.map((a, m) => a * rowOf[m]), sum = each.reduce((a, b) => a + b);
    return make("div", {className: "stage-of"}, make("b", {textContent: `${name} ${number(value)}`}),
      make("div", {className: "lines"}, ...[[`${shown(t)}, as the layer reads it`, x], [`times: line ${place + 1} of W_${letter}`, rowOf], ["gives", each]]
        .map(([text, v]) => make("div", {}, make("small", {textContent: text}), streak(v)))),
      make("p", {textContent: `${x.length} products again, added: ${number(sum)}; with the bias ${number(bias)}: ${number(value)}.`}));
  }
  const without = scores[i].map((s, j) => j === k ? s - (has.scale ? product / Math.sqrt(dk) : product) : s), weight = heads[h].weights[i][k];
  const turn = step => make("button", {"data-key": step, disabled: n + step < 0 || n + step >= dk, textContent: step < 0 ? `‹ number ${n}` : `number ${n + 2} ›`, onclick: () => zoom([l, h, k, n + step])});
  redraw($("panel"), make("div", {className: "product-of"}, make("span", {}, make("strong", {textContent: number(q[i][n])}), make("small", {textContent: `query of ${shown(i)}`})), "×",
    make("span", {}, make("strong", {textContent: number(keys[k][n])}), make("small", {textContent: `key of ${shown(k)}`})), "=", make("span", {}, make("strong", {textContent: number(product)}), make("small", {textContent: "one product"}))),
  make("div", {className: "row"}, turn(-1), turn(1)),
  make("div", {className: "stages-of"}, factor("q", "the query's number", i, q[i][n]), factor("k", "the key's number", k, keys[k][n])));
  told(`This is the bottom: two numbers are multiplied. Without this one product ${shown(k)} would have the weight ${three(softmax(without)[k])} and not ${three(weight)}.`, [
    [`q${low(n + 1)} × k${low(n + 1)}`, `${number(q[i][n])} × ${number(keys[k][n])} = ${number(product)}`],
    [`q${low(n + 1)} = Σ x${"ₘ"} W_q[${place + 1}, m] + b`, `= ${number(q[i][n])}, and the key's number likewise`]]);
}

// ---------------------------------------------------------------- the story: seven scenes of ten seconds
// A scene draws itself for any moment from 0 to 1, so a pause is a still picture and the end is the whole of it.
const SECONDS = 10, film = {moment: 1, playing: false, last: 0};
const between = (moment, from, to) => { const t = Math.min(1, Math.max(0, (moment - from) / (to - from))); return t * t * (3 - 2 * t); };
function strongest() {  // the head that looks back most at one token; the beginning and the token just before count least
  const i = has.place, worth = ({l, h, weights}) => used(l, h) ? Math.max(...weights[i].map((a, t) => t >= i ? 0 : t && t < i - 1 ? a : a / 1000)) : -1;
  return headsOf().reduce((best, head) => worth(head) > worth(best) ? head : best);
}
function cast(W) {  // the tokens that act: the one that asks, and those that its strongest head looks at most; [token, x of its middle]
  const i = has.place, {weights} = strongest(), order = ids.map((_, t) => t).filter(t => t !== i && (!has.mask || t < i)).sort((a, b) => weights[i][b] - weights[i][a]);
  const chosen = [i, ...order.slice(0, W < 560 ? 4 : 7)].sort((a, b) => a - b), step = Math.min(130, (W - 20) / chosen.length);
  return chosen.map((t, n) => [t, W / 2 + (n - (chosen.length - 1) / 2) * step, step]);
}
const word = (t, x, y, set = {}) => svg("text", {x, y, "text-anchor": "middle", ...set, class: `${t === has.place ? "ask" : ""} ${set.class || ""}`}, shown(t).length > 11 ? `${shown(t).slice(0, 10)}…` : shown(t));
const label = (text, x, y, set = {}) => svg("text", {x, y, "text-anchor": "middle", class: "small", ...set}, text);
const block = (vector, x, y, set = {}) => { const columns = vector.length > 64 ? 16 : 8, cell = (set.wide || 52) / columns; return mosaic(vector, x - (set.wide || 52) / 2, y, columns, cell, set); };
const SCENES = [
  {name: "tokens", tell: () => `The text is cut into ${ids.length - 1} tokens, and each has its number in a list of ${model.weights["embedding.weight"].shape[0].toLocaleString("en")}${model.kind === "text" ? ": common words are one token, rare ones several" : ": 74 words and three marks"}. BOS, a mark of the beginning, comes before them.`,
    draw(W, H, moment) {
      const size = W < 560 ? 15 : 18, wide = ids.map((_, t) => Math.max(24, shown(t).length * size * .58 + 14)), lines = [[]];
      let x = 0;
      ids.forEach((_, t) => { if (x + wide[t] > W - 10) { lines.push([]); x = 0; } lines.at(-1).push([t, x]); x += wide[t] + 5; });
      const rows = lines.slice(0, 5), high = Math.min(58, H / rows.length), parts = [];
      rows.forEach((line, n) => { const last = line.at(-1), shift = (W - last[1] - wide[last[0]]) / 2, y = H / 2 + (n - rows.length / 2) * high; line.forEach(([t, left]) => {
        const cut = between(moment, .1 + .6 * t / ids.length, .18 + .6 * t / ids.length), at = left + shift;
        parts.push(svg("rect", {x: at, y, width: wide[t], height: size * 1.7, rx: 6, class: `box${t === has.place ? " ask" : ""}`, opacity: cut}),
          word(t, at + wide[t] / 2, y + size * 1.18, {style: `font-size:${size}px`, opacity: t ? 1 : cut}), label(ids[t], at + wide[t] / 2, y + size * 1.7 + 14, {opacity: cut}));
      }); });
      return parts;
    }},
  {name: "vectors", tell: () => { const {d} = sizes(); return `Each token becomes ${d} numbers that the model has learned for it (blue: above zero, orange: below). Then ${d} numbers for its position are added. ${quoted(has.place)} begins as ${some(result.streams[0][has.place])}`; },
    draw(W, H, moment) {
      const E = model.weights["embedding.weight"], P = model.weights["position.weight"], d = sizes().d;
      return cast(W).flatMap(([t, x, step], n, all) => {
        const late = .12 * n / all.length, cells = (from, to) => Math.round(d * between(moment, from + late, to + late)), wide = Math.min(64, step - 12);
        return [word(t, x, 24), block(row(E, ids[t]), x, 40, {wide, count: cells(.02, .25)}), label(between(moment, .3, .34) && (step > 80 || n === (all.length >> 1)) ? "+ its place" : "", x, 122),
          block(row(P, t), x, 130, {wide, count: cells(.32, .5)}), label(between(moment, .6, .64) && (step > 80 || n === (all.length >> 1)) ? "= together" : "", x, 212), block(result.streams[0][t], x, 220, {wide, count: cells(.62, .8)})];
      });
    }},
  {name: "query meets key", tell: () => { const {l, h, products} = strongest(), i = has.place, best = cast(900).reduce((a, b) => products[i][b[0]] > products[i][a[0]] ? b : a)[0];
      return `In ${nameOf(l, h)}, which looks back most, ${quoted(i)} asks a question, its query, and every token holds up a key. Both are computed from the numbers before, by matrices that the model has learned. The better they fit, the larger the sum of their products: ${quoted(best)} fits best, with ${number(products[i][best]).replace("-", "−")}${products[i][best] < 0 ? " (only the differences count)" : ""}.`; },
    draw(W, H, moment) {
      const {l, h, q, k, products} = strongest(), i = has.place, all = cast(W), home = all.find(([t]) => t === i)[1], N = all.length;
      const way = Math.max(0, moment - .08) / .8 * N, leg = Math.min(N - 1, Math.floor(way)), part = Math.min(1, (way - leg) * 2);  // from key to key, with a rest at each
      const [was, is] = [leg ? all[leg - 1][1] : home, all[leg][1]], x = moment >= .92 ? is + (home - is) * between(moment, .92, 1) : was + (is - was) * between(part, 0, 1);
      return [label(`the query of ${shown(i)}`, x, 30, {style: `fill:${colour(l, h)};font-weight:700`}), block(q[i], x, 38, {wide: Math.min(64, all[0][2] - 10)}),
        ...all.flatMap(([t, at, step], n) => { const told = moment >= .92 || n < leg || n === leg && part === 1, near = n === leg && moment < .92;
          return [svg("path", {class: "flow", stroke: colour(l, h), "stroke-width": told ? 2 : 0, d: `M${at} 74V112`, opacity: near ? 1 : .25}), block(k[t], at, 116, {wide: Math.min(64, step - 10)}), word(t, at, 172),
            label(told ? number(products[i][t]) : "", at, 204, {class: "says", style: `font-size:${(near ? 22 : 17) * Math.min(1, step / 90)}px`})]; }),
        label("keys, and query · key", W / 2, 236)];
    }},
  {name: "softmax", tell: () => { const {l, h, weights} = strongest(), i = has.place, best = weights[i].indexOf(Math.max(...weights[i])); return `${has.scale ? `The sums are divided by √${model.about.settings.d / sizes().n_heads}, so that wide vectors do not make large scores. ` : ""}Then the softmax turns the scores into shares of 1: it raises e to each, which favours the largest, and divides by the sum: ${quoted(best)} gets ${three(weights[i][best])} of the attention.`; },
    draw(W, H, moment) {
      const {l, h, scores, weights} = strongest(), i = has.place, all = cast(W), most = Math.max(...all.map(([t]) => Math.abs(scores[i][t]))) || 1, top = Math.max(...scores[i]);
      const raised = between(moment, .25, .45), shared = between(moment, .6, .8), ground = 160 + 50 * raised;
      return [label(["the scores", "e to each of them (here the largest is set to 1)", "divided by their sum: the weights"][shared > .5 ? 2 : raised > .5 ? 1 : 0], W / 2, 22, {class: "ask"}),
        svg("path", {class: "road", d: `M10 ${ground}H${W - 10}`}),
        ...all.flatMap(([t, x, step]) => {
          const e = Math.exp(scores[i][t] - top), a = weights[i][t], grow = between(moment, 0, .15), size = grow * (1 - raised) * scores[i][t] / most * 80 + raised * ((1 - shared) * e + shared * a) * 140;
          return [svg("rect", {x: x - Math.min(24, step / 3), y: Math.min(ground, ground - size), width: Math.min(48, step / 1.5), height: Math.abs(size), rx: 3, fill: colour(l, h)}),
            label(shared > .5 ? three(a) : raised > .5 ? three(e) : number(scores[i][t]), x, size < 0 ? ground - 6 : ground - size - 6, {class: ""}), word(t, x, 262)];
        })];
    }},
  {name: "values", tell: () => { const {weights} = strongest(), i = has.place, best = weights[i].indexOf(Math.max(...weights[i])); return `Every token also offers a value, what it hands over to whoever looks at it. Each value is multiplied by its weight, and their sum is what ${quoted(i)} takes along: mostly from ${quoted(best)}${best === i ? ", which is itself" : ""}.`; },
    draw(W, H, moment) {
      const {l, h, v, weights} = strongest(), i = has.place, all = cast(W), flow = between(moment, .25, .7), sum = v[0].map((_, n) => weights[i].reduce((total, a, t) => total + a * v[t][n], 0));
      return [...all.flatMap(([t, x, step]) => { const a = weights[i][t], faded = 1 - (1 - Math.max(.12, a)) * between(moment, .08, .25);
        return [word(t, x, 22), block(v[t], x, 32, {wide: Math.min(64, step - 10), opacity: faded}), label(three(a), x, 88, {opacity: between(moment, .08, .2)}),
          svg("path", {class: "flow", pathLength: 1, "stroke-dasharray": `${flow} 2`, stroke: colour(l, h), "stroke-width": .6 + 16 * a, opacity: .25 + .6 * a, d: `M${x} 96C${x} 160 ${W / 2} 130 ${W / 2} 196`})]; }),
        svg("g", {opacity: between(moment, .6, .8)}, block(sum, W / 2, 200, {wide: 96}), label(`what ${shown(i)} takes along`, W / 2, 272))];
    }},
  {name: "heads", tell: () => `All this was one head. There are ${sizes().n_heads} in each of the ${sizes().n_layers} layers, and each looks for something else. ${quoted(has.place)} adds what they found to its numbers. A second step, the MLP, reworks these, and the next layer begins with the result.`,
    draw(W, H, moment) {
      const i = has.place, L = sizes().n_layers, N = sizes().n_heads, tall = Math.min(134, (H - 10) / L), phone = W < 560, x = h => (phone ? 30 : 110) + (h + .5) * (W - (phone ? 36 : 320)) / N;
      return headsOf().flatMap(({l, h, weights}) => {
        const best = weights[i].indexOf(Math.max(...weights[i])), order = l * N + h, seen = used(l, h) ? between(moment, .05 + .8 * order / (L * N), .12 + .8 * order / (L * N)) : .15, y = H - (l + .5) * tall - 4;
        const after = between(moment, .05 + .8 * (l + 1) / L - .05, .05 + .8 * (l + 1) / L), [says, share] = h ? [] : saysHere(result.streams[l + 1][i]);
        return [svg("circle", {cx: x(h), cy: y - 9, r: 5 + 13 * weights[i][best], fill: colour(l, h), opacity: seen}), label(`→ ${shown(best)}`, x(h), y + 24, {opacity: seen, class: phone && L > 2 ? "small" : ""}),
          ...h || phone ? [] : [label(`layer ${l}`, 48, y, {class: "ask"}), label(`then it would say`, W - 96, y - 8, {opacity: after}), label(`${says} ${share.toFixed(2)}`, W - 96, y + 12, {class: "ask", opacity: after})]];
      });
    }},
  {name: "next word", tell: () => { const best = likeliest(p); return `By now the numbers of ${quoted(has.place)} hold a guess at what follows. They are compared with every token of the list, and a last softmax makes probabilities of that: “${model.name(best)}” has ${three(p[best])}. Write it, and the story begins again, one token longer.`; },
    draw(W, H, moment) {
      const phone = W < 560, best = p.map((share, id) => [share, id]).filter(([, id]) => model.sayable(id)).sort((a, b) => b[0] - a[0]).slice(0, 6), left = phone ? 190 : W * .42, room = W - left - 60, end = result.streams.at(-1)[has.place];
      return [word(has.place, phone ? 50 : W * .16, 96), block(end, phone ? 50 : W * .16, 108, {wide: phone ? 70 : 110, count: Math.round(end.length * between(moment, .02, .25))}),
        ...best.flatMap(([share, id], n) => { const y = 40 + n * 40, grow = between(moment, .3 + .06 * n, .55 + .06 * n);
          return [svg("path", {class: "flow", pathLength: 1, "stroke-dasharray": `${grow} 2`, stroke: "var(--model)", "stroke-width": .8 + 7 * share, opacity: .3 + .6 * share, d: `M${phone ? 90 : W * .16 + 62} 136C${left - 100} 136 ${left - 120} ${y} ${left - 82} ${y}`}),
            svg("text", {x: left - 8, y: y + 5, "text-anchor": "end", class: n ? "" : "ask", opacity: grow}, model.name(id)), svg("rect", {x: left, y: y - 9, width: Math.max(1, room * share * grow), height: 18, rx: 3, class: "bar0"}),
            svg("text", {x: left + room * share * grow + 7, y: y + 5, class: "small", opacity: grow}, three(share))]; })];
    }},
];
function drawFilm() {
  const open = has.scene > 0, scene = SCENES[has.scene - 1], picture = $("film").querySelector("svg");
  $("film").hidden = !open; $("earlier").disabled = has.scene < 2; $("later").disabled = has.scene === SCENES.length;
  $("play").hidden = still.matches; $("play").textContent = film.playing ? "❚❚ Pause" : small() ? "▶ Play" : "▶ Play the story";
  keep($("scenes"), SCENES, ({name}, n) => make("button", {textContent: `${n + 1} ${name}`, onclick: () => show(n + 1)}), (node, _, n) => {
    node.setAttribute("aria-pressed", n + 1 === has.scene); node.style.setProperty("--done", n + 1 === has.scene && film.playing ? film.moment : n + 1 <= has.scene ? 1 : 0);
  });
  if (!open) return;
  const W = Math.max(280, picture.parentNode.clientWidth - 28), H = 290;
  picture.setAttribute("viewBox", `0 0 ${W} ${H}`);
  picture.setAttribute("height", H); picture.setAttribute("width", W);
  picture.replaceChildren(...scene.draw(W, H, still.matches ? 1 : film.moment));
  const text = scene.tell(), acting = cast(W).length;
  if (acting < ids.length && has.scene > 1 && has.scene < 6) picture.append(label(`drawn are the ${acting} tokens that it looks at most`, W, H - 2, {"text-anchor": "end"}));
  if ($("telling").textContent !== text) $("telling").textContent = text;
}
function show(scene) {  // a scene that one has chosen: from its beginning if the story plays, else as a still picture
  film.moment = film.playing ? 0 : 1;
  has.scene = scene;
  drawFilm(); saveAddress(); bring();
}
function bring() {  // the story is where one sees it
  if ($("film").getBoundingClientRect().bottom > innerHeight || $("story").getBoundingClientRect().top < 0) $("story").scrollIntoView({behavior: still.matches ? "auto" : "smooth"});
}
function pause() { film.playing = false; }
function play() {
  if (film.playing) { pause(); return drawFilm(); }
  if (film.moment >= 1) { film.moment = 0; has.scene = has.scene % SCENES.length || 1; }  // a scene that was chosen plays from its beginning; after the last one comes the first
  Object.assign(film, {playing: true, last: performance.now()});
  drawFilm(); saveAddress(); bring(); requestAnimationFrame(tick);
}
function tick(now) {
  if (!film.playing) return;
  film.moment += Math.max(0, now - film.last) / 1000 / SECONDS; film.last = now;
  if (film.moment >= 1) {
    if (has.scene < SCENES.length) { has.scene++; film.moment = 0; saveAddress(); } else { film.moment = 1; pause(); }
  }
  drawFilm();
  requestAnimationFrame(tick);
}
function listenInside() {
  $("play").onclick = play; $("earlier").onclick = () => show(has.scene - 1); $("later").onclick = () => show(has.scene + 1);
  const out = () => { const all = has.zoom.length === entry; entry = all ? 0 : entry; zoom(all ? [] : has.zoom.slice(0, -1)); };
  $("out").onclick = out;
  addEventListener("keydown", event => {
    if (event.key === "Escape" && has.zoom.length && event.target !== $("text")) { event.preventDefault(); out(); }
  });
}
