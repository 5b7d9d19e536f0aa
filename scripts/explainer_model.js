"use strict";
// The two models of the page, and how each of them reads a text. Nothing here knows of the page.
// A weight is {shape, data}; a vector is an array; a text of T tokens is an array of T vectors.

// ---------------------------------------------------------------- numbers out of a file
async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
function half(bits) {  // a number of 16 bits
  const sign = bits & 0x8000 ? -1 : 1, e = bits >> 10 & 31, m = bits & 1023;
  return sign * (e === 0 ? m * 2 ** -24 : e === 31 ? NaN : (1 + m / 1024) * 2 ** (e - 15));
}
// A matrix in 8 bits has one scale for each of its rows, which stands beside it as name.scale.
function readSafetensors(buffer) {
  const view = new DataView(buffer), length = Number(view.getBigUint64(0, true));
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  function numbers(name) {
    const {dtype, data_offsets: [from, to]} = head[name], at = 8 + length + from;
    const size = {I8: 1, F16: 2, F32: 4}[dtype], data = new Float32Array((to - from) / size);
    for (let i = 0; i < data.length; i++)
      data[i] = size === 1 ? view.getInt8(at + i) : size === 2 ? half(view.getUint16(at + 2 * i, true)) : view.getFloat32(at + 4 * i, true);
    return data;
  }
  const weights = {};
  for (const name of Object.keys(head).filter(name => name !== "__metadata__" && !name.endsWith(".scale"))) {
    const {shape, dtype} = head[name], data = numbers(name);
    if (dtype === "I8") {
      const scale = numbers(`${name}.scale`);
      for (let i = 0; i < data.length; i++) data[i] *= scale[Math.floor(i / shape[1])];
    }
    weights[name] = {shape, data};
  }
  return {weights, about: JSON.parse(head.__metadata__.about)};
}

// ---------------------------------------------------------------- the transformer
const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };
const add = (a, b) => a.map((x, i) => x + b[i]);
const row = (W, i) => Array.from(W.data.subarray(i * W.shape[1], (i + 1) * W.shape[1]));
function linear(x, W, b) {
  const [rows, columns] = W.shape, y = new Array(rows);
  for (let i = 0, at = 0; i < rows; i++) {
    let sum = 0;
    for (let j = 0; j < columns; j++, at++) sum += x[j] * W.data[at];
    y[i] = sum + b.data[i];
  }
  return y;
}
function layerNorm(x, gain, bias) {
  const mean = x.reduce((a, b) => a + b) / x.length, d = x.map(v => v - mean);
  const root = Math.sqrt(dot(d, d) / x.length + 1e-5);
  return d.map((v, i) => gain.data[i] * v / root + bias.data[i]);
}
function softmax(scores) {
  const most = Math.max(...scores), e = scores.map(s => Math.exp(s - most)), sum = e.reduce((a, b) => a + b);
  return e.map(v => v / sum);
}
// options: mask, scale (booleans), off: set of "layer,head", layersOff: set of numbers. Returns
// streams: L + 1 texts of T vectors, the first before layer 0; layers: what each layer does, as lists over the tokens:
//   normed, heads (each {q, k, v, products, scores, weights}), found (what the heads add), inner (the MLP's cells), said (what it adds).
function run(model, ids, options = {}) {
  const {mask = true, scale = true, off = new Set(), layersOff = new Set()} = options;
  const {weights: w, about: {settings: {d, n_heads: h, n_layers: L}}} = model, dk = d / h;
  const nothing = size => ids.map(() => new Array(size).fill(0));
  let x = ids.map((id, t) => add(row(w["embedding.weight"], id), row(w["position.weight"], t)));
  const streams = [x], layers = [];
  for (let l = 0; l < L; l++) {
    const name = `blocks.${l}.`, through = (part, y) => y.map(v => linear(v, w[`${name}${part}.weight`], w[`${name}${part}.bias`]));
    const norm = (part, y) => y.map(v => layerNorm(v, w[`${name}${part}.weight`], w[`${name}${part}.bias`]));
    const normed = norm("norm1", x), merged = nothing(d);
    const [Q, K, V] = ["q", "k", "v"].map(letter => through(`attention.W_${letter}`, normed));
    const heads = Array.from({length: h}, (_, i) => {
      const cut = M => M.map(v => v.slice(i * dk, (i + 1) * dk)), [q, k, v] = [cut(Q), cut(K), cut(V)];
      const products = q.map(a => k.map(b => dot(a, b)));
      const scores = products.map((r, t) => r.map((s, j) => mask && j > t ? -Infinity : scale ? s / Math.sqrt(dk) : s));
      const weights = scores.map(softmax);
      if (!off.has(`${l},${i}`)) weights.forEach((r, t) => r.forEach((a, j) => {
        if (a) for (let n = 0; n < dk; n++) merged[t][i * dk + n] += a * v[j][n];
      }));
      return {q, k, v, products, scores, weights};
    });
    let found = nothing(d), inner = nothing(w[`${name}mlp.0.bias`].data.length), said = nothing(d);
    if (!layersOff.has(l)) {
      found = through("attention.W_o", merged);
      x = x.map((v, t) => add(v, found[t]));
      inner = through("mlp.0", norm("norm2", x)).map(v => v.map(a => Math.max(0, a)));
      said = through("mlp.2", inner);
      x = x.map((v, t) => add(v, said[t]));
    }
    layers.push({normed, heads, found, inner, said});
    streams.push(x);
  }
  return {streams, layers};
}
// A vector of the stream, read as if it were the last one: a number for each token that may come next.
const readOff = ({weights: w}, v) => linear(layerNorm(v, w["norm.weight"], w["norm.bias"]), w["output.weight"], w["output.bias"]);

// ---------------------------------------------------------------- the grammar's model: words
// The grammar as states: edges[state] = {word id: [probability, next state]}.
function readGrammar(buffer, shares) {
  const view = new DataView(buffer), edges = [];
  for (let at = 0; at < buffer.byteLength; at += 7) {
    const [state, word, share, next] = [view.getUint16(at, true), view.getUint8(at + 2), view.getUint16(at + 3, true), view.getUint16(at + 5, true)];
    (edges[state] = edges[state] || {})[word] = [shares[share], next];
  }
  return edges;
}
// Signs other than the full stop are passed over: "keys," is keys.
const wordsOf = text => (text.toLowerCase().normalize("NFC").match(/\.|[\p{L}\p{M}\p{N}'’]+/gu) || [])
  .map(word => word.replace(/^['’]+|['’]+$/g, "")).filter(Boolean);
function grammarModel(weights, states, shares) {
  const model = readSafetensors(weights), words = model.about.vocabulary, edges = readGrammar(states, shares), stop = words.indexOf(".");
  const after = ids => ids.slice(1).reduce((state, id) => edges[state]?.[id] ? edges[state][id][1] : id === stop ? 0 : -1, 0);
  return {...model, kind: "grammar", words, edges, stop, after,
    ids: text => [1, ...wordsOf(text).map(word => words.indexOf(word)).filter(id => id > 2)],
    name: id => id === 1 ? "BOS" : words[id],
    glued: () => false,  // does a token belong to the word before?
    sayable: id => id > 2,
    textOf: ids => ids.map(id => words[id]).join(" "),
    truth: ids => edges[after(ids)] || null};
}

// ---------------------------------------------------------------- the model of real text: bytes, merged as in lesson 15
const PIECES = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;  // GPT-2's words
function textModel(weights) {
  const model = readSafetensors(weights), merges = model.about.merges, BOS = 256 + merges.length;
  const rank = new Map(merges.map(([a, b], n) => [a * 65536 + b, 256 + n]));
  const bytes = Array.from({length: 256}, (_, i) => [i]);
  for (const [a, b] of merges) bytes.push([...bytes[a], ...bytes[b]]);
  function merge(ids) {  // always the pair that was learned earliest
    const earliest = Math.min(...ids.slice(1).map((id, i) => rank.get(ids[i] * 65536 + id) ?? Infinity));
    if (earliest === Infinity) return ids;
    const [a, b] = merges[earliest - 256], merged = [];
    for (let i = 0; i < ids.length; i++)
      if (ids[i] === a && ids[i + 1] === b) { merged.push(earliest); i++; } else merged.push(ids[i]);
    return merge(merged);
  }
  const read = text => { const words = text.toLowerCase().replace(/[ \t\r\n]+/g, " ").replace(/^ +| +$/g, ""); return words && ` ${words}`; };
  const decode = ids => new TextDecoder().decode(Uint8Array.from(ids.flatMap(id => bytes[id])));
  const whole = bytes.map((_, id) => !decode([id]).includes("\ufffd"));  // not half a character
  const string = id => whole[id] ? decode([id]) : "";
  return {...model, kind: "text", stop: 46,
    ids: text => [BOS, ...(read(text).match(PIECES) || []).flatMap(word => merge([...new TextEncoder().encode(word)]))],
    name: id => id === BOS ? "BOS" : !whole[id] ? bytes[id].map(b => b.toString(16).toUpperCase()).join(" ")
      : string(id) === " " ? "␣" : /^[\p{L}\p{N}]/u.test(string(id)) ? `‑${string(id)}` : string(id).trim(),
    glued: id => id !== BOS && !string(id).startsWith(" "),
    isByte: id => id !== BOS && !whole[id],
    sayable: id => id !== BOS && whole[id],
    textOf: ids => decode(ids).trim(),
    truth: () => null};
}
