// Runs in the kernel's own thread, in the place of Pyodide's first script: tells the page what has come, and why it failed; and
// keeps what came, so that the next visit asks the network for none of it. KEPT, the name under which it is kept, is from
// scripts/edition.py: it changes with Pyodide's files, and the course's own wheels change their names.
const channel = new BroadcastChannel("loading-python");
const plain = self.fetch;
const asked = new Set();
const store = self.caches?.open(KEPT).catch(() => undefined);  // where a browser keeps nothing, all is loaded each time
let here = 0, fresh = 0;

async function counting(...what) {
  const kept = await store, address = String(what[0].url ?? what[0]);
  const known = await kept?.match(address, {ignoreVary: true}).catch(() => undefined);
  const lacks = why => channel.postMessage({failed: `${address.split("/").pop()}: ${why}`});  // Pyodide would go on without it
  const answer = known ?? await plain(...what).catch(error => {
    lacks(error.message);
    throw error;
  });
  if (!answer.ok) lacks(answer.status);
  if (!answer.ok || !answer.body) return answer;
  asked.add(new URL(address, location).href);
  if (!known) kept?.put(address, answer.clone()).catch(() => {});  // no room, for example
  const parts = answer.body.pipeThrough(new TransformStream({transform(part, out) {
    fresh += known ? 0 : part.length;
    channel.postMessage({here: here += part.length, fresh});
    out.enqueue(part);
  }}));
  return new Response(parts, {status: answer.status, statusText: answer.statusText, headers: answer.headers});
}

// What an earlier edition of the course has left.
async function tidy() {
  const kept = await store;
  for (const request of await kept?.keys() ?? []) if (!asked.has(request.url)) await kept.delete(request);
  for (const name of await self.caches?.keys() ?? [])
    if (name.startsWith(KEPT.split("-")[0]) && name !== KEPT) await self.caches.delete(name);
}

self.loadPyodide = async options => {
  try {
    self.fetch = counting;
    importScripts(`${options.indexURL}pyodide.js`);  // which brings the real loadPyodide
    const python = await self.loadPyodide(options);
    // Without a thread to wait in, Matplotlib says at once that its fonts take long.
    python.runPython("import logging; logging.getLogger('matplotlib.font_manager').setLevel(logging.ERROR)");
    tidy().catch(() => {});
    channel.postMessage({here: Infinity, fresh});
    return python;
  } catch (error) {
    channel.postMessage({failed: error.message});
    throw error;
  } finally {
    self.fetch = plain;
  }
};
