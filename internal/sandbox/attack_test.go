package sandbox

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar"
)

// TestPID1IsOutOfReach: whoever could slow PID 1 down would put off the end of its
// run, and whoever could limit it would end it in place of itself.
func TestPID1IsOutOfReach(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		o := python(t, h, `
import ctypes, errno, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def probe(name, f):
    try:
        r = f()
    except OSError as e:
        print(name, errno.errorcode[e.errno])
    else:
        print(name, "OPEN", r)
def call(nr, *args):
    if libc.syscall(nr, *args) < 0: raise OSError(ctypes.get_errno(), "")
probe("scheduler", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
probe("affinity", lambda: os.sched_setaffinity(1, {0}))
probe("param", lambda: os.sched_setparam(1, os.sched_param(0)))
probe("nice", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
probe("nice of the group", lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
probe("nice of the user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
probe("limits", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)))
probe("asynchronous files", lambda: call(206, 8, ctypes.byref(ctypes.c_long(0))))
os.sched_setaffinity(0, os.sched_getaffinity(0)); os.setpriority(os.PRIO_PROCESS, 0, 5)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print("own", os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_NOFILE))
n = 0
while n < 1000:
    if libc.inotify_init1(0) < 0: break
    n += 1
print("watches", n)
`)
		want := "scheduler EPERM\naffinity EPERM\nparam EPERM\nnice EPERM\nnice of the group EPERM\nnice of the user EPERM\n" +
			"limits EPERM\nasynchronous files ENOSYS\nown 5 (100, 100)\nwatches 16\n"
		if o.out != want {
			t.Errorf("%q %s", o.out, o.err)
		}
	})
}

// TestBusyRunsEndOnTime: many spinning processes at one processor do not hold up
// the end, nor the answer to a neighbour.
func TestBusyRunsEndOnTime(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		begin := time.Now()
		o := python(t, h, `
import os
os.sched_setaffinity(0, {0})
for _ in range(50):
    if os.fork() == 0:
        while True: pass
while True: pass
`, limit(func(l *belljar.Limits) { l.TimeoutMS = 1000 }))
		if o.Cause != CauseTimeout {
			t.Errorf("%+v", o.Exit)
		}
		if o.Usage.CPUMS < 100 {
			t.Errorf("a busy second took %v ms of processor time", o.Usage.CPUMS)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("the end came after %v", took)
		}
	})
}

// TestMemoryThatHidesIsBounded: as a user without control groups, what no resident
// set shows. With a control group the kernel counts it.
func TestMemoryThatHidesIsBounded(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		small := limit(func(l *belljar.Limits) { l.MemoryBytes = 128 << 20; l.TimeoutMS = 15_000 })
		o := python(t, h, `
import mmap, time
m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
print("growing", flush=True)
for i in range(0, 1 << 40, 2 << 20):
    m[i]
time.sleep(1)
`, small)
		if o.Cause != CauseMemory || o.out != "growing\n" {
			t.Errorf("page tables: %+v %q %s", o.Exit, o.out, o.err)
		}
		o = python(t, h, `
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(0, 4096, 0o1600) >= 0 or errno.errorcode[ctypes.get_errno()])
`, small)
		if want := map[bool]string{true: "True\n", false: "ENOSYS\n"}[os.Geteuid() == 0]; o.out != want {
			t.Errorf("shared segments: %q, want %q", o.out, want)
		}
		if os.Geteuid() != 0 {
			return
		}
		o = python(t, h, `
import socket
socks, total = [], 0
try:
    while total < 64 << 20 and len(socks) < 400:
        a, b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20); b.bind(("127.0.0.1", 0)); a.setblocking(False)
        socks += [a, b]
        for _ in range(60):
            a.sendto(b"x" * 60000, b.getsockname())
    mem = [l for l in open("/proc/net/sockstat") if l.startswith("UDP:")][0].split()
    print("pages", int(mem[mem.index("mem") + 1]))
except OSError as e:
    print("refused", e)
`, small)
		t.Logf("socket buffers: %q %s", o.out, o.err)
		if !strings.HasPrefix(o.out, "pages ") && !strings.HasPrefix(o.out, "refused") && o.Cause != CauseMemory {
			t.Errorf("socket buffers: %+v %q %s", o.Exit, o.out, o.err)
		}
	})
}
