"""How fast does the chat model run: the course's code beside transformers' `LlamaForCausalLM` with the same numbers?

    python tests/bench/chat.py [--prompt 128] [--new 24] [--rounds 3]

Both read a prompt at once and then write new tokens greedily, with their cache, in turns; the tokens have to be the same.
Seconds are CPU seconds, one thread; what counts is the ratio within one run. The peak of memory is measured in a process of
its own for each; transformers' includes the course's reading of the file, since it gets its numbers from there.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from helpers import course_text, smollm2

torch.set_num_threads(1)


def ours(model, ids, new):
    """(ids of the new tokens, seconds of the prompt, seconds of the rest)"""
    begun, (logits, cache) = time.process_time(), model.run(ids)
    read, written = time.process_time() - begun, [logits[0, -1].argmax().item()]
    begun = time.process_time()
    while len(written) < new:
        logits, cache = model.run(torch.tensor([written[-1:]]), cache)
        written.append(logits[0, -1].argmax().item())
    return written, read, time.process_time() - begun


def theirs(model, ids, new):
    """The same for transformers."""
    begun, out = time.process_time(), model(ids, use_cache=True)
    read, written = time.process_time() - begun, [out.logits[0, -1].argmax().item()]
    begun = time.process_time()
    while len(written) < new:
        out = model(torch.tensor([written[-1:]]), past_key_values=out.past_key_values, use_cache=True)
        written.append(out.logits[0, -1].argmax().item())
    return written, read, time.process_time() - begun


def megabytes():
    if sys.platform == "linux":  # ru_maxrss would begin with the parent's
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt")
    parser.add_argument("--new", type=int, default=24, help="tokens to write")
    parser.add_argument("--rounds", type=int, default=3, help="turns; the fastest counts")
    parser.add_argument("--only", choices=["ours", "theirs"], help=argparse.SUPPRESS)  # one of them, for its memory
    chosen = parser.parse_args()
    model = smollm2.load()
    text = " ".join(paragraph.text for paragraph in course_text.load_paragraphs())
    ids = torch.tensor([model.tokens.encode(text)[:chosen.prompt]])
    runs = {"ours": lambda: ours(model, ids, chosen.new)}
    if chosen.only != "ours":
        other = smollm2.reference(model)
        runs["theirs"] = lambda: theirs(other, ids, chosen.new)
    with torch.inference_mode():
        if chosen.only:
            runs[chosen.only]()
            print(f"{megabytes():.0f}")
            return
        found = {name: [] for name in runs}
        for _ in range(chosen.rounds):
            for name, run in runs.items():
                found[name].append(run())
    print("the same tokens:", len({tuple(words) for turns in found.values() for words, _, _ in turns}) == 1)
    best = {name: [min(turn[i] for turn in turns) for i in (1, 2)] for name, turns in found.items()}
    for name, (read, wrote) in best.items():
        peak = subprocess.run([sys.executable, __file__, "--only", name, "--prompt", str(chosen.prompt)],
                              capture_output=True, text=True, check=True).stdout.strip()
        print(f"{name:7} reads {chosen.prompt / read:5.0f} tokens a CPU-second, writes {(chosen.new - 1) / wrote:5.1f}; "
              f"peak {peak} MB")
    print("transformers / ours, CPU time: reading {:.2f}, writing {:.2f}".format(
        *(theirs / ours for theirs, ours in zip(best["theirs"], best["ours"], strict=True))))


if __name__ == "__main__":
    main()
