// Runs in the kernel's own thread, in the place of Pyodide's first script: tells the page what has been loaded, and why it failed.
const channel = new BroadcastChannel("loading-python");
const plain = self.fetch;
let here = 0;

async function counting(...what) {
  const answer = await plain(...what);
  if (!answer.body) return answer;
  const parts = answer.body.pipeThrough(new TransformStream({transform(part, out) {
    channel.postMessage({here: here += part.length});
    out.enqueue(part);
  }}));
  return new Response(parts, {status: answer.status, statusText: answer.statusText, headers: answer.headers});
}

self.loadPyodide = async options => {
  try {
    self.fetch = counting;
    importScripts(`${options.indexURL}pyodide.js`);  // which brings the real loadPyodide
    const python = await self.loadPyodide(options);
    // Without a thread to wait in, Matplotlib says at once that its fonts take long.
    python.runPython("import logging; logging.getLogger('matplotlib.font_manager').setLevel(logging.ERROR)");
    return python;
  } catch (error) {
    channel.postMessage({failed: error.message});
    throw error;
  } finally {
    self.fetch = plain;
    channel.postMessage({here: Infinity});
  }
};
