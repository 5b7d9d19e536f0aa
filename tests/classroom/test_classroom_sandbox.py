"""What a submission can see and reach from inside, and what a hostile worker can send out."""

import json
import os
import platform
from pathlib import Path

import numpy as np
import pytest
from submissions import gone, needs_sandbox, read

from classroom import sandbox, wire
from classroom.sandbox import Limits, Sandbox, SandboxStopped

LONG = 600  # seconds by the clock until a test gives up: what is tested are limits on CPU time, memory and processes


@pytest.fixture(scope="module")
def inside():
    """One sandbox for all tests that only look. The one that fills its folders comes last."""
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
seen += [] if [line.split(':')[0].strip() for line in open('/proc/self/net/dev') if ':' in line] == ['lo'] else ['a network']
""")
    assert seen == []


@pytest.mark.slow
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
def test_only_sockets_that_lead_nowhere_can_be_made(inside):
    """A network namespace does not cut AF_VSOCK off, family 40: it leads to the host of a virtual machine."""
    call = sandbox.SOCKETS[platform.machine()][0]
    seen = inside(f"""
import asyncio, ctypes, errno, socket
libc, made, others = ctypes.CDLL(None, use_errno=True), [], []
for family in [*range(64), 2**31 - 1]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close(); made.append(family)
        except OSError as error:
            others += [family] if family not in (1, 2, 10) and error.errno != errno.EAFNOSUPPORT else []
number = ctypes.c_long((1 << 32) | 40)  # the kernel reads the lower half of it
hidden = libc.syscall(ctypes.c_long({call}), number, ctypes.c_long(1), ctypes.c_long(0)), ctypes.get_errno()
for one in socket.socketpair():
    one.close()
async def three():
    return 3
seen = [sorted(set(made)), others, hidden == (-1, errno.EAFNOSUPPORT), asyncio.run(three())]
""")
    assert set(seen[0]) <= {1, 2, 10} and 1 in seen[0] and seen[1:] == [[], True, 3]


@needs_sandbox
def test_reaches_into_no_other_process(inside):
    """Neither into the one that holds the sandbox together, which has number 1, nor into a child."""
    call = {"x86_64": (101, 310, 311, 438), "aarch64": (117, 270, 271, 438)}[platform.machine()]
    seen = inside(f"""
import ctypes, errno, os, time
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if not child:
    time.sleep(999)
seen = []
for process in (1, child):
    six = (process, 0, 0, 0, 0, 0)
    for call, arguments in zip({call}, [(16, process, 0, 0), six, six, (process, 0, 0)]):
        ctypes.set_errno(0)
        refused = libc.syscall(call, *arguments) == -1 and ctypes.get_errno() == errno.ENOSYS
        seen += [] if refused else [f'call {{call}} on {{process}}']
for mode in ('rb', 'r+b'):
    try:
        open('/proc/1/mem', mode).close(); seen.append(f'memory of 1, {{mode}}')
    except OSError: pass
""")
    assert seen == []


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


@needs_sandbox
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
          np.arange(3, dtype=np.int8)[::-1], list(range(500)), {"a": {1}, (1, "b"): [{"c"}], None: {}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_travel(value):
    back = wire.decode(json.loads(json.dumps(wire.encode(value))))
    assert type(back) is type(value) and repr(back) == repr(value)


def test_sets_tensors_and_generators_travel():
    assert wire.decode(wire.encode(frozenset({"c"}))) == {"c"}
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool):
        value = torch.ones(2, 3, dtype=dtype, requires_grad=dtype.is_floating_point)
        back = wire.decode(wire.encode(value))
        assert back.dtype == dtype and torch.equal(back, value)
    assert wire.decode(wire.encode(torch.ones(2, dtype=torch.bfloat16))).dtype == torch.float32
    rng = np.random.default_rng(5)
    assert wire.decode(json.loads(json.dumps(wire.encode(rng)))).random() == np.random.default_rng(5).random()


def form(shape, kind="array", data=""):
    return {"dtype": "i1", "shape": shape, "data": data, "is": kind}


def f8(shape, data=""):
    return {"dtype": "f8", "shape": shape, "data": data}


STATE = np.random.PCG64(0).state
ONE = "AAAAAAAAAAA="  # a number of eight bytes


@pytest.mark.parametrize("bomb", [
    3, None, {}, f8([1]) | {"dtype": "O8"}, f8([10**9]), f8([-1], ONE), f8([True], ONE), f8([2], ONE), f8([1], "!"),
    f8([]) | {"dtype": ["f8"]}, {"tuple": 3}, {"tuple": [3]}, {"plain": {}}, {"list": [{"plain": None}] * 1000},
    json.loads('{"list": [' * 100 + '{"plain": null}' + "]}" * 100), {"generator": {"bit_generator": "x"}},
    {"dict": [[{"list": []}, {"plain": None}]]}, {"dict": [[{"plain": "a"}]]}, {"dict": 3}, {"set": [{"dict": []}]},
    form([60_000, 0]) | {"dtype": "c16", "shape": [200_000, 0]}, form([0, 2_000_000, 2]), form([2_000_000] * 31 + [0]),
    form([1] * 31 + [2_000_001], data="AAAA" * 700_000), form([float("nan")]), form([float("inf"), 0]), form([10**400]),
    form([[]]), form({"0": 1}), form([1] * 33, data="AA=="), form([], data="AAAA" * 10**6),
    {"list": {}}, {"list": {str(i): i for i in range(10**5)}}, {"plain": 10**4000}, {"plain": [[]] * 10**5},
    {str(i): i for i in range(10**5)}, {"other": [[]] * 10**5, "plain": 1},
    *({"generator": state} for state in (
        None, 3, "x", [], {}, STATE | {"state": 3}, STATE | {"state": {"state": -1, "inc": 1}},
        STATE | {"state": {"state": 10**4000, "inc": 1}}, STATE | {"state": {"state": 1.5, "inc": float("nan")}},
        STATE | {"state": {"state": [0], "inc": "x"}}, STATE | {"has_uint32": 2}, STATE | {"has_uint32": True},
        STATE | {"uinteger": 2**32}, STATE | {"uinteger": [10**6]}, STATE | {"bit_generator": "MT19937"},
        STATE | {"bit_generator": ["PCG64"]}))], ids=lambda bomb: repr(bomb)[:40])
def test_what_encode_did_not_write_and_a_bomb_are_refused(bomb):
    with pytest.raises(wire.Malformed):
        wire.decode(bomb)


@pytest.mark.parametrize("bomb", [
    form([60_000, 0], "list"), form([100_001], "list", "AAAA" * 33_333 + "AAA="), form([300, 400, 0], "list"),
    form([10_000] + [1] * 31, "list", "AAAA" * 3_333 + "AA=="), form([0] * 20 + [5_000, 0] + [3_000, 0], "list")],
    ids=lambda bomb: f"{bomb['shape']}"[:40])
def test_lists_of_a_value_are_counted_all_together(bomb):
    """What is made of a few bytes: 12 million empty lists took 8 GB outside the sandbox, and nobody had a grade."""
    with pytest.raises((OverflowError, wire.Malformed)):
        wire.decode({"list": [bomb] * 3})


def test_arrays_of_many_axes_are_counted_with_all_their_lists():
    many = {"list": [form([1] * 32, "list", "AA==")] * 200}
    assert np.shape(wire.decode(many)) == (200, *[1] * 32)
    with pytest.raises(OverflowError, match="more than 100,000 members"):
        wire.decode({"list": [many] * 20})


def nested(value, times, each=200):
    """Lists of lists of ... ``value``, which need no room as long as they are the same ones."""
    for _ in range(times):
        value = [value] * each
    return value


@pytest.mark.parametrize("bomb", [
    [np.zeros((60_000, 0))] * 201, np.zeros((60_000, 0)).tolist() * 2, nested(0, 3), nested((), 3), nested(None, 15, 3),
    nested([0] * 1000, 2), list(range(100_001)), [list(range(1000))] * 150, [np.zeros((300, 1, 1, 1)).tolist()] * 150,
    ([[0] * 500] * 150,) * 2, {n: n for n in range(wire.MEMBERS + 1)}])
def test_too_many_members_do_not_travel(bomb):
    back = wire.encode(bomb)
    assert set(back) == {"large"} and "more than 100,000 members" in back["large"]
    with pytest.raises(OverflowError, match="more than 100,000 members"):
        wire.decode(back)


@pytest.mark.parametrize("shape", [(0, 2_000_000), (2_000_000, 2_000_000, 0), (2, 125_001)])
def test_an_axis_of_length_0_does_not_make_an_array_small(shape):
    with pytest.raises(OverflowError, match=f"an array of shape .*{shape[1]}"):
        wire.decode(wire.encode(np.broadcast_to(0.0, shape)))
    assert wire.decode(wire.encode(np.zeros((60_000, 0, 3)))).shape == (60_000, 0, 3)


def test_strange_objects_have_only_a_name():
    class Odd:
        pass
    assert type(wire.decode(wire.encode(Odd()))).__name__ == "Odd"
    assert type(wire.decode({"other": "\ud800<script>\0"})).__name__.isprintable()
    with pytest.raises(OverflowError, match="1000000000"):
        wire.decode(wire.encode(np.broadcast_to(0.0, 10**9)))
