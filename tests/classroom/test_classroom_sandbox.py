"""What a submission can see and reach from inside, and what a hostile worker can send out."""

import json
import os
import platform
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from submissions import gone, read

from classroom import sandbox, wire
from classroom.sandbox import Limits, Sandbox, SandboxStopped

LONG = 600  # seconds by the clock until a test gives up: what is tested are limits on CPU time, memory and processes
needs_sandbox = pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))


@pytest.fixture
def inside():
    box = Sandbox(Limits())

    def look(code):
        """Run ``code``, which sets ``seen``, in the sandbox."""
        answer = box.ask({"do": "cell", "number": 1, "source": f"{code}\ndef look(): return seen", "seconds": 20}, LONG)
        assert answer["error"] is None, answer
        answer = box.ask({"do": "call", "name": "look", "calls": [[]], "seconds": 5, "clock": LONG}, LONG)
        return wire.decode(answer["answers"][0]["value"])

    look.box = box
    yield look
    box.close()


@needs_sandbox
def test_sees_nothing_of_others(inside, tmp_path):
    (tmp_path / "other.ipynb").write_text("secret")
    seen = inside(f"""
import os
seen = []
for path in [{str(tmp_path)!r}, {str(sandbox.ROOT / 'notebooks')!r}, {str(sandbox.HERE)!r}, '/course/notebooks',
             '/home', '/etc/passwd', '/var', '/root/.ssh', '/mnt', '/proc/1/environ', {os.path.expanduser('~/.bashrc')!r}]:
    try:
        open(path).read() if not os.path.isdir(path) else os.listdir(path) or 1 / 0
        seen.append(path)
    except (OSError, ZeroDivisionError):
        pass
for folder, _, names in os.walk('/course'):
    seen += [n for n in names if n.endswith('.ipynb') or 'assignment' in n or 'grading' in n]
seen += os.listdir('/course/classroom')
""")
    assert [s for s in seen if s != "/proc/1/environ"] == []


@needs_sandbox
def test_sees_no_other_process_and_no_environment(inside):
    os.environ["CLASSROOM_SECRET"] = "x"
    try:
        seen = inside("""
import os
commands = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]
seen = [c for c in commands if 'pytest' in c] + [v for v in os.environ if 'SECRET' in v]
seen += [] if os.getuid() == 65534 else ['root']
seen += [line for line in open('/proc/self/status') if line.startswith('CapEff') and int(line.split()[1], 16)]
""")
    finally:
        del os.environ["CLASSROOM_SECRET"]
    assert seen == []


@needs_sandbox
def test_writes_and_reaches_nothing(inside):
    seen = inside("""
import os, socket, ctypes
seen = []
for path in ['/x', '/usr/x', '/course/helpers/x.py', '/course/data/x', '/grader/worker.py', '/etc/x',
             '/course/classroom/x']:
    try:
        open(path, 'w').close(); seen.append(path)
    except OSError: pass
for address in [('127.0.0.1', 22), ('192.0.2.1', 80)]:
    try: socket.create_connection(address, 1); seen.append(address)
    except OSError: pass
if ctypes.CDLL(None).unshare(0x10000000) == 0: seen.append('a user namespace of its own')
try:
    for i in range(100): open(f'/tmp/{i}', 'wb').write(bytes(10**6))
    seen.append('100 MB')
except OSError: pass
seen += [] if [n for _, n in socket.if_nameindex()] == ['lo'] else ['a network']
""")
    assert seen == []


@needs_sandbox
@pytest.mark.parametrize(("limits", "child", "status"), [
    (Limits(together=150 * 2**20), "x = bytearray(60_000_000)", "memory limit"),
    (Limits(total_seconds=2), "\n    while True: pass", "time limit")])
def test_many_processes_count_together(limits, child, status):
    box = Sandbox(limits)
    with pytest.raises(SandboxStopped, match="together") as stopped:
        source = f"import os, time\nfor _ in range(6):\n  if not os.fork():\n    {child}\n    time.sleep(999)\n"
        source += "time.sleep(999)"
        box.ask({"do": "cell", "number": 1, "seconds": 20, "source": source}, LONG)
    assert stopped.value.status == status
    box.close()


@needs_sandbox
def test_the_kernel_refuses_what_no_notebook_needs(inside):
    seen = inside("""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(call):
    return call() == -1 and ctypes.get_errno() == errno.ENOSYS
seen = [refused(lambda: libc.shmget(0, 4096, 0o1600)), refused(lambda: libc.semget(0, 1, 0o1600)),
        refused(lambda: libc.msgget(0, 0o1600)), refused(lambda: libc.memfd_create(b'x', 0)), os.getpid() > 0]
""")
    assert seen == [True] * 5


@needs_sandbox
def test_cpu_time_is_the_kernels_figure(inside):
    for source in ("import time; time.process_time = lambda: 1e300", "import resource; resource.getrusage = None"):
        inside(f"{source}\nseen = 1\nfor i in range(3_000_000): pass")
    memory, cpu = inside.box.used()
    assert 0.05 < cpu < 60 and 10e6 < memory < 1e9


@needs_sandbox
def test_death_is_noticed_at_once_and_takes_the_children_along():
    box = Sandbox(Limits(total_seconds=319, patience=20))  # 319 marks our processes
    with pytest.raises(SandboxStopped, match="exit code 3"):  # and not that it did not end in time
        box.ask({"do": "cell", "number": 1, "seconds": 5, "source":
                 "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(999)\nos._exit(3)"}, LONG)
    box.close()
    gone(lambda: [p for p in Path("/proc").glob("[0-9]*/cmdline") if b'"CPU": 319' in read(p)])


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("bwrap"), reason="there is no bubblewrap")
def test_a_processor_whose_call_numbers_are_unknown_is_refused(monkeypatch):
    """It was graded on without the filter, and nobody was told."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    sandbox.problem.cache_clear()
    try:
        with pytest.raises(sandbox.NoSandbox, match="not for this one, riscv64: grade on another machine"):
            Sandbox(Limits())
    finally:
        sandbox.problem.cache_clear()


VALUES = [np.arange(6.0).reshape(2, 3), np.float32(1.5), np.array(True), 3, -2.5, 1j, True, "text", None,
          (1, [2.0, None]), [[1, 2], [3, 4]], np.zeros((0, 3)), np.array([np.nan, np.inf]),
          np.arange(3, dtype=np.int8)[::-1], list(range(500))]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_travel(value):
    back = wire.decode(json.loads(json.dumps(wire.encode(value))))
    assert type(back) is type(value) and repr(back) == repr(value)


def test_tensors_and_generators_travel():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
        value = torch.ones(2, 3, dtype=dtype, requires_grad=dtype.is_floating_point)
        back = wire.decode(wire.encode(value))
        assert back.dtype == dtype and torch.equal(back, value)
    assert wire.decode(wire.encode(torch.ones(2, dtype=torch.bfloat16))).dtype == torch.float32
    rng = np.random.default_rng(5)
    assert wire.decode(json.loads(json.dumps(wire.encode(rng)))).random() == np.random.default_rng(5).random()


@pytest.mark.parametrize("form", [
    3, None, {}, {"dtype": "O8", "shape": [1], "data": ""}, {"dtype": "f8", "shape": [10**9], "data": ""},
    {"dtype": "f8", "shape": [-1], "data": "AAAAAAAAAAA="}, {"dtype": "f8", "shape": [True], "data": "AAAAAAAAAAA="},
    {"dtype": "f8", "shape": [2], "data": "AAAAAAAAAAA="}, {"dtype": "f8", "shape": [1], "data": "!"}, {"plain": {}},
    {"dtype": ["f8"], "shape": [], "data": ""}, {"tuple": 3}, {"tuple": [3]}, {"generator": {"bit_generator": "x"}},
    {"list": [{"plain": None}] * 1000}])
def test_what_encode_did_not_write_is_refused(form):
    with pytest.raises(wire.Malformed):
        wire.decode(form)
    deep = {"plain": None}
    for _ in range(100):
        deep = {"list": [deep]}
    with pytest.raises(wire.Malformed):
        wire.decode(deep)


def test_strange_objects_have_only_a_name():
    class Odd:
        pass
    assert type(wire.decode(wire.encode(Odd()))).__name__ == "Odd"
    assert type(wire.decode({"other": "\ud800<script>\0"})).__name__.isprintable()
    with pytest.raises(OverflowError, match="1000000000"):
        wire.decode(wire.encode(np.broadcast_to(0.0, 10**9)))
