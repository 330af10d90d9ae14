package bridge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belljar/belljar"
)

// TestScript runs real scripts with the real client. want is the whole output.
func TestScript(t *testing.T) {
	cases := []struct {
		name   string
		source string
		want   string
		stats  Stats // Bytes is compared only when it is not 0
	}{
		{"round trip", `print(tools.echo(text="hello"))`, "hello\n", Stats{Answered: 1, Bytes: 5}},
		{"by name", `print(tools("echo", text="hello"), tools("args", name="n", self=1, tool=2))`,
			"hello {'name': 'n', 'self': 1, 'tool': 2}\n", Stats{Answered: 2}},
		{"imported", "from belljar_tools import echo, tools as t, ToolError\nprint(echo(text='a'), t.echo(text='b'), t.ToolError is ToolError)\n",
			"a b True\n", Stats{Answered: 2}},
		{"loop of a thousand", `print(sum(tools.echo(text=i) for i in range(1000)))`, "499500\n", Stats{Answered: 1000}},
		{"values", `
for v in (None, True, 1, 1.5, "", [], {}, [1, [2, {"a": None}]], {"k": "v"}, 2**70):
    assert tools.echo(text=v) == v, v
print(tools.blob(), tools.echo(text=(1, 2)), tools.args())`,
			"b'\\x00\\xff\\n\\x00' [1, 2] {}\n", Stats{Answered: 13}},
		{"odd text", `
for v in ("", "\0", "a\u2028b\u2029", "\U0001f514", "\x7f\x80", "\"\\/\b\f\n\r\t", "\ufffd\ufeff", "\u0130i"):
    assert tools.echo(text=v) == v, v
    assert tools.echo(text=[v]) == [v], v
    assert tools.args(**{v or "e": v}) == {v or "e": v}, v
print("same")`, "same\n", Stats{Answered: 24}},
		{"errors have fields", `
for name in ("nothing_here", "forbidden", "fail", "fault", "panic", "notjson"):
    try:
        tools(name)
        print(name, "returned")
    except RuntimeError as e:
        print(type(e).__name__, e.tool, e.denied, e.code, "|", e, "|", e.reason == str(e))
print(tools.echo(text="still works"))`,
			`ToolError nothing_here False unknown_tool | tool 'nothing_here' not available | True
ToolError forbidden True disabled | Blocked by policy: Tool 'forbidden' is disabled by policy. | True
ToolError fail False failed | it broke | True
ToolError fault False failed | tool 'fault' failed | True
ToolError panic False failed | tool 'panic' failed | True
ToolError notjson False failed | tool 'notjson' answered what is not JSON | True
still works
`, Stats{Answered: 7}},
		{"positional arguments", `
for f in (lambda: tools.echo("a"), lambda: tools.echo({"text": "a"}), lambda: tools("echo", "a"), lambda: tools(), lambda: tools(5)):
    try:
        f()
    except TypeError as e:
        print(e)`,
			`tools.echo takes keyword arguments only, as in tools.echo(key=value); a dict goes in as tools.echo(**dict)
tools.echo takes keyword arguments only, as in tools.echo(key=value); a dict goes in as tools.echo(**dict)
tools takes one name and keyword arguments, as in tools("name", key=value)
tools takes one name and keyword arguments, as in tools("name", key=value)
the name of a tool is a str, not int
`, Stats{}},
		{"what JSON cannot hold", `
loop = []
loop.append(loop)
deep = 1
for _ in range(100000): deep = [deep]
for v in (float("nan"), float("inf"), {1, 2}, b"a", object, "\ud800", "a\udcff", loop, deep, {(1, 2): 3}):
    try:
        tools.echo(text=v)
        print("sent")
    except (TypeError, ValueError) as e:
        print(type(e).__name__, str(e).startswith("tools.echo: "))
while isinstance(deep, list): deep = deep[0]
print(tools.echo(text="still works"))`,
			"ValueError True\nValueError True\nTypeError True\nTypeError True\nTypeError True\nValueError True\nValueError True\nValueError True\nValueError True\nTypeError True\nstill works\n",
			Stats{Answered: 1}},
		{"large results", `
for n in (65526, 65527, 65528, 100_000, 1 << 20, 10_000_000, 16 << 20, 7):
    assert tools.big(bytes=n) == "y" * n, n
print("same")`, "same\n", Stats{Answered: 8}},
		{"result too large", `
try:
    tools.big(bytes=(16 << 20) + 1)
except tools.ToolError as e:
    print(e.code, e)
print(tools.echo(text="alive"))`,
			"result_too_large the answer of tool 'big' has 16777217 bytes, at most 16777216 are allowed: ask for a part of it\nalive\n",
			Stats{Answered: 2, Bytes: 5}},
		{"oversized and deep arguments", `
def t(f):
    try:
        f()
        return "ok"
    except tools.ToolError as e:
        return e.code
print(t(lambda: tools.echo(text="y" * (64 << 20))))
v = 1
for _ in range(900):
    v = [v]
print(t(lambda: tools.echo(text=v)))
print(t(lambda: tools("n" * 200)), t(lambda: tools("n" * 300)), t(lambda: tools("")), t(lambda: tools("a\nb")))
print(tools.echo(text="alive"))`,
			"too_large\ntoo_deep\nbad_frame too_large bad_frame bad_frame\nalive\n", Stats{Answered: 1, Malformed: 5}},
		{"threads cross nothing", `
import threading
wrong = []
def work(n):
    for i in range(32):
        text = ("%d-%d-" % (n, i)) * 5000
        text = text[:20000]
        if tools.echo(text=text) != text:
            wrong.append((n, i))
all = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for x in all: x.start()
for x in all: x.join()
print(wrong)`, "[]\n", Stats{Answered: 256, Bytes: 256 * 20000}},
		{"many threads", `
from concurrent.futures import ThreadPoolExecutor
def go(i):
    return all(tools.echo(text="n%d.%d" % (i, k)) == "n%d.%d" % (i, k) for k in range(200))
with ThreadPoolExecutor(16) as p:
    r = list(p.map(go, range(16)))
print("all", all(r), len(r))`, "all True 16\n", Stats{Answered: 3200}},
		{"slow calls side by side", `
import threading, time
for tool in ("slow", "slow"):
    t = time.monotonic()
    all = [threading.Thread(target=lambda: tools(tool, seconds=0.5)) for _ in range(40)]
    for x in all: x.start()
    tools.echo(text="beside")
    for x in all: x.join()
    print(time.monotonic() - t < 10)`, "True\nTrue\n", Stats{Answered: 82}},
		{"more calls than may be in flight", `
import threading
all = [threading.Thread(target=lambda: tools.slow(seconds=0.05)) for _ in range(150)]
for x in all: x.start()
for x in all: x.join()
print("done")`, "done\n", Stats{Answered: 150}},
		{"fork", `
import os, threading
def work(tag):
    for i in range(300):
        text = "%s-%d" % (tag, i)
        assert tools.echo(text=text) == text
work("before")
kids = []
for n in range(4):
    pid = os.fork()
    if pid == 0:
        try:
            all = [threading.Thread(target=work, args=("kid%d.%d" % (n, k),)) for k in range(3)]
            for x in all: x.start()
            work("kid%d" % n)
            for x in all: x.join()
        except BaseException as e:
            print(n, e)
            os._exit(1)
        os._exit(0)
    kids.append(pid)
work("parent")
print([os.waitpid(pid, 0)[1] for pid in kids])
work("after")`, "[0, 0, 0, 0]\n", Stats{Answered: 300*3 + 4*4*300}},
		{"fork while another thread calls", `
import os, threading, warnings
warnings.simplefilter("ignore") # new Pythons warn of it
stop = False
def busy():
    n = 0
    while not stop:
        n += 1
        assert tools.echo(text="t%d" % n) == "t%d" % n
all = [threading.Thread(target=busy) for _ in range(3)]
for x in all: x.start()
codes = []
for i in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if tools.echo(text="kid%d" % i) == "kid%d" % i else 1)
    codes.append(os.waitpid(pid, 0)[1])
stop = True
for x in all: x.join()
print(sum(codes))`, "0\n", Stats{Answered: -1}},
		{"pool of forked workers", `
import multiprocessing
def go(i):
    if i == 13:
        tools.forbidden()
    return tools.echo(text="p%d" % i) == "p%d" % i
tools.echo(text="first")
with multiprocessing.get_context("fork").Pool(4) as p:
    print(all(p.map(go, range(100, 200))))
    try:
        p.map(go, range(12, 14))
    except RuntimeError as e:
        print(type(e).__name__, e.tool, e.denied, e.code, e)
    print(p.apply(tools.echo, (), {"text": "pickled"}))`,
			"True\nToolError forbidden True disabled Blocked by policy: Tool 'forbidden' is disabled by policy.\npickled\n", Stats{Answered: 104}},
		{"spawned workers have no bridge", `
import multiprocessing
def go(i):
    try:
        return tools.echo(text=i)
    except RuntimeError as e:
        return type(e).__name__, e.code, "fork" in str(e)
if __name__ == "__main__":
    print(tools.echo(text="parent"))
    with multiprocessing.get_context("spawn").Pool(1) as p:
        print(p.apply(go, (1,)))`, "parent\n('ToolError', 'no_bridge', True)\n", Stats{Answered: 1}},
		{"subprocess has no descriptor", `
import subprocess, sys
code = "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4] , os.path.exists('/proc/self/fd/4'))"
for used in (False, True):
    for close in (True, False):
        names = subprocess.run(["/bin/ls", "-l", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=close).stdout
        print(b"socket" in names)
    tools.echo(text="now there is a stream too")
kid = "try: tools.echo(text=1)\nexcept RuntimeError as e: print(e.code)"
print(subprocess.run([sys.executable, "-c", kid], stdout=subprocess.PIPE).stdout.decode().strip())`,
			"False\nFalse\nFalse\nFalse\nno_bridge\n", Stats{Answered: 2}},
		{"interrupted calls", `
import signal, threading, time
def late(signum, frame):
    raise TimeoutError("too slow")
signal.signal(signal.SIGALRM, late)
results = []
def beside():
    for i in range(300):
        results.append(tools.echo(text="b%d" % i) == "b%d" % i)
for round in range(3):
    t = threading.Thread(target=beside)
    t.start()
    for i in range(20):
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        try:
            tools.slow(seconds=5)
            print("answered")
        except TimeoutError as e:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert tools.echo(text="a%d" % i) == "a%d" % i
    t.join()
print(len(results), all(results))`, "900 True\n", Stats{Answered: -1}},
		{"interrupted at every moment", `
import signal, random, sys
sys.unraisablehook = lambda *_: None  # what Python swallows when it strikes in a __del__
def late(signum, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, late)
random.seed(7)
tools.echo(text="an interrupted import is not what this is about")
hits = 0
for i in range(600):
    size = random.choice((5, 40_000, 300_000))
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0008))
        got = tools.big(bytes=size)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        hits += 1
        continue
    assert len(got) == size, (i, len(got), size)
signal.setitimer(signal.ITIMER_REAL, 0)
print(hits > 0, tools.echo(text="in order"))`, "True in order\n", Stats{Answered: -1}},
		{"a signal handler that calls tools", `
import signal
got = []
signal.signal(signal.SIGALRM, lambda *_: got.append(tools.echo(text="from the handler")))
signal.setitimer(signal.ITIMER_REAL, 0.05)
print(tools.slow(seconds=0.3), got)`, "slept ['from the handler']\n", Stats{Answered: 2}},
		{"surroundings", `
import socket, signal
socket.setdefaulttimeout(0.01)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
print(tools.slow(seconds=0.2))`, "slept\n", Stats{Answered: 1}},
		{"plain object", `
import copy, pickle, inspect
t = tools
print(hasattr(tools, "__len__"), hasattr(tools, "__iter__"), callable(tools), t.echo(text=1), tools.echo(text=2))
print(pickle.loads(pickle.dumps(tools)) is tools, copy.copy(t) is t, repr(tools), repr(tools.echo))
e = pickle.loads(pickle.dumps(tools.ToolError("why", "x", True, "fence")))
print(repr(e), e.tool, e.denied, e.code, e.reason)
tools = [1, 2]
print(tools)`,
			`False False True 1 2
True True <the tools of this run: tools.name(key=value)> <tool echo>
ToolError('why') x True fence why
[1, 2]
`, Stats{Answered: 2}},
		{"nothing is imported before the first call", `
import sys
print("belljar_tools" in sys.modules, "json" in sys.modules, "socket" in sys.modules)
tools.echo(text=[1])
print("belljar_tools" in sys.modules, "json" in sys.modules, "socket" in sys.modules)`, "False False False\nTrue False False\n", Stats{Answered: 1}},
		{"no descriptor left", `
import os, resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (16, hard))
full = []
def fill():
    try:
        while True: full.append(os.dup(0))
    except OSError: pass
import belljar_tools
for free in (0, 1):
    fill()
    for fd in full[:free]: os.close(fd)
    full = full[free:]
    try:
        tools.echo(text=1)
    except OSError as e:
        print(e)
for fd in full: os.close(fd)
print(tools.echo(text="room again"))`, "[Errno 24] Too many open files\n[Errno 24] Too many open files\nroom again\n", Stats{Answered: 1}},
		{"closed by the script", `
import os
tools.echo(text=1)
os.closerange(3, 100)
for _ in range(2):
    try:
        tools.echo(text=1)
    except RuntimeError as e:
        print(e.code)`, "closed\nno_bridge\n", Stats{Answered: 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, stats := script(t, &tools{}, Config{}, c.source)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if c.stats.Answered < 0 { // how many depends on chance
				return
			}
			if c.stats.Bytes == 0 {
				stats.Bytes = 0
			}
			if diff := cmp.Diff(c.stats, stats); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFaults checks that what the script is not told is told to the engine.
func TestFaults(t *testing.T) {
	var mu sync.Mutex
	var faults []string
	cfg := Config{Fault: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, strings.SplitN(err.Error(), "\n", 2)[0])
	}}
	out, _ := script(t, &tools{}, cfg, `
for name in ("fault", "panic"):
    try:
        tools(name)
    except RuntimeError as e:
        print("secret" in str(e))`)
	if out != "False\nFalse\n" {
		t.Errorf("the script saw %q", out)
	}
	want := []string{`call tool "fault": a secret inside`, `call tool "panic": panic in tool "panic": a secret inside`}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestStreamsAreCapped lets more processes call at once than may.
func TestStreamsAreCapped(t *testing.T) {
	out, _ := script(t, &tools{}, Config{MaxStreams: 3}, `
import os
r, w = os.pipe()
go, hold = os.pipe()
for i in range(5):
    if os.fork() == 0:
        os.close(hold)
        try:
            tools.echo(text=1)
            os.write(w, b"y")
        except RuntimeError as e:
            os.write(w, b"n" if e.code == "too_many_streams" else b"?")
        os.read(go, 1)
        os._exit(0)
print("".join(sorted(os.read(r, 1).decode() for _ in range(5))))
os.close(hold)
for _ in range(5): os.wait()
print(tools.echo(text="places are free again"))`)
	if want := "nnyyy\nplaces are free again\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestRunEnds closes the bridge while a script and a forked child of it are in
// calls, and after it they call again.
func TestRunEnds(t *testing.T) {
	h := &tools{}
	b, err := Open(context.Background(), Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	cmd, out := start(t, b, `
import os
pid = os.fork()
for _ in range(3):
    try:
        print(tools.slow(seconds=60))
    except RuntimeError as e:
        print(type(e).__name__, e.code, flush=True)
if pid:
    os.waitpid(pid, 0)
`)
	for h.calls.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	stats := b.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("script: %v", err)
	}
	if diff := cmp.Diff(Stats{CutOff: 2}, stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if got, want := strings.Count(out.String(), "ToolError closed\n"), 6; got != want {
		t.Errorf("%d of %d calls failed as closed:\n%s", got, want, out)
	}
	if n := h.calls.Load(); n != 2 {
		t.Errorf("the handler was called %d times, want 2: late calls must not reach it", n)
	}
}

// TestDeadProcessIsCancelled checks that a call ends with the process that made it.
func TestDeadProcessIsCancelled(t *testing.T) {
	ended := make(chan error, 1)
	h := handler(func(ctx context.Context, tool string, _ []byte) (belljar.Value, error) {
		if tool == "echo" {
			return belljar.Value{}, nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return belljar.Value{}, ctx.Err()
	})
	out, stats := script(t, h, Config{}, `
import os, signal, time
tools.echo()
pid = os.fork()
if pid == 0:
    tools.wait()
time.sleep(0.2)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
print(tools.echo() == "")
`)
	if out != "True\n" {
		t.Errorf("got %q", out)
	}
	if err := <-ended; err != ErrGone && err != ErrClosed {
		t.Errorf("the call ended with cause %v", err)
	}
	if diff := cmp.Diff(Stats{Answered: 2, CutOff: 1}, stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func ExampleConfig() {
	_, err := Open(context.Background(), Config{MaxName: 256}, nil)
	fmt.Println(err)
	// Output: bridge: max_name is 256, want 1 to 255
}
