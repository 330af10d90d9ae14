package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/testkit"
)

// TestClaimsHold looks at a living run from outside, in /proc, and compares what
// is there with what the result claims: a protection that is claimed and absent
// fails.
func TestClaimsHold(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		out, w := io.Pipe()
		live := make(chan map[string]bool, 1)
		problems := make(chan error, 1)
		go func() {
			// The run's own ids say nothing outside; it is found by its parent chain.
			_, err := bufio.NewReader(out).ReadString('\n')
			var found map[string]bool
			if err == nil {
				found, err = inspect(h)
			}
			live <- found
			problems <- err
			_, _ = io.Copy(io.Discard, out)
		}()
		var errs bytes.Buffer
		exit, err := h.Run(context.Background(), &Spec{
			Argv:   []string{"/bin/sh", "-c", "echo ready; sleep 1"},
			Env:    []string{"PATH=/usr/bin:/bin"},
			Limits: defaults(), Stdout: w, Stderr: &errs,
		})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		found := <-live
		if err := <-problems; err != nil {
			t.Fatal(err)
		}
		for _, p := range exit.Isolation.Protections {
			got, known := found[p]
			if !known {
				t.Errorf("%s is claimed, and nothing checks it", p)
			} else if !got {
				t.Errorf("%s is claimed and absent", p)
			}
		}
		for _, m := range exit.Isolation.Missing {
			if slices.Contains(exit.Isolation.Protections, m.Protection) {
				t.Errorf("%s is claimed and missing", m.Protection)
			}
			if m.Reason == "" {
				t.Errorf("%s is missing without a reason", m.Protection)
			}
		}
		if exit.Isolation.Level != belljar.LevelNamespaces {
			t.Errorf("level %s", exit.Isolation.Level)
		}
		t.Log(exit.Isolation.Protections, exit.Isolation.Missing)
	})
}

// inspect finds the program of the one living run and checks every protection.
func inspect(h *Host) (map[string]bool, error) {
	spawner, err := theSpawner()
	if err != nil {
		return nil, err
	}
	tree, _ := family(spawner)
	if len(tree) < 3 {
		return nil, fmt.Errorf("no program below the spawner: %v", tree)
	}
	program := tree[2] // spawner, PID 1, program
	read := func(name string) string {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(program) + "/" + name)
		return string(b)
	}
	status := map[string]string{}
	for line := range strings.Lines(read("status")) {
		k, v, _ := strings.Cut(line, ":")
		status[k] = strings.TrimSpace(v)
	}
	if len(status) == 0 {
		return nil, fmt.Errorf("the program %d is gone", program)
	}
	own := func(ns string) bool {
		a, err1 := os.Readlink("/proc/self/ns/" + ns)
		b, err2 := os.Readlink("/proc/" + strconv.Itoa(program) + "/ns/" + ns)
		return err1 == nil && err2 == nil && a != b
	}
	limit := func(name string) int {
		for line := range strings.Lines(read("limits")) {
			if rest, ok := strings.CutPrefix(line, name); ok {
				n, err := strconv.Atoi(strings.Fields(rest)[1]) // hard
				if err != nil {
					return -1
				}
				return n
			}
		}
		return -1
	}
	mounts := read("mountinfo")
	group := func(controller string) bool {
		for line := range strings.Lines(read("cgroup")) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(f) == 3 && (f[1] == controller || f[1] == "") && strings.Contains(f[2], "belljar-") {
				return true
			}
		}
		return false
	}
	ids := strings.Fields(status["Uid"])
	hostRoot := slices.Contains(ids, "0")
	zero := strings.Repeat("0", 16)
	return map[string]bool{
		"userns": own("user") && !hostRoot, "pid": own("pid") && len(strings.Fields(status["NSpid"])) > 1,
		"net": own("net"), "ipc": own("ipc"), "uts": own("uts"), "cgroup": own("cgroup"),
		"mounts":  own("mnt") && rootOnly(mounts),
		"seccomp": status["Seccomp"] == "2", "no_new_privs": status["NoNewPrivs"] == "1",
		"no_capabilities": status["CapEff"] == zero && status["CapPrm"] == zero && status["CapInh"] == zero &&
			status["CapBnd"] == zero && status["CapAmb"] == zero,
		"rlimits":        limit("Max core file size") == 0 && limit("Max open files") == int(defaults().OpenFiles),
		"process_rlimit": limit("Max processes") >= int(defaults().Processes)+initOverhead && limit("Max processes") <= int(defaults().Processes)+initOverhead+spareProcesses,
		"disk_quota":     strings.Contains(mounts, "size=65536k,nr_inodes=10000"),
		"memory_cgroup":  group("memory"), "pids_cgroup": group("pids"),
		"memory_watch": !group("memory"),
	}, nil
}

// rootOnly says that every mount is one that the plan makes, and that all but the
// run's own are read-only.
func rootOnly(mountinfo string) bool {
	writable := map[string]bool{"/workspace": true, "/tmp": true, "/dev/shm": true}
	seen := 0
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		seen++
		options := strings.Split(f[5], ",")
		device := strings.HasPrefix(f[4], "/dev/") || f[3] == "/null" || f[3] == "/dev/null"
		if !slices.Contains(options, "nosuid") {
			return false
		}
		if !writable[f[4]] && !device && !slices.Contains(options, "ro") {
			return false
		}
		for _, bad := range []string{"/root", "/home", "/run", "/var", "/sys", "/.host"} {
			if f[4] == bad || strings.HasPrefix(f[4], bad+"/") {
				return false
			}
		}
	}
	return seen > 5
}

// theSpawner finds this process's only living spawner.
func theSpawner() (int, error) {
	tree, _ := family(os.Getpid())
	for _, pid := range tree[1:] {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && strings.HasPrefix(string(b), "belljar-spawner") {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no spawner below %d", os.Getpid())
}

func TestCanaries(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		c := testkit.NewCanary(t)
		o := python(t, h, c.Fill(`
import os, socket, glob
def probe(name, f):
    try:
        r = f()
    except BaseException as e:
        print("PROBE", name, "DENIED", type(e).__name__)
    else:
        print("PROBE", name, "OPEN", str(r)[:200])
def connect(family, where):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(2)
    s.connect(where)
    return s.recv(100)
probe("file", lambda: open("@@CANARY_FILE@@").read())
probe("shadow", lambda: open("/etc/shadow").read())
probe("home", lambda: os.listdir("/root") + os.listdir("/home"))
probe("run", lambda: os.listdir("/run"))
probe("sys", lambda: os.listdir("/sys"))
probe("port", lambda: connect(socket.AF_INET, ("127.0.0.1", @@CANARY_PORT@@)))
probe("abstract", lambda: connect(socket.AF_UNIX, "\0@@CANARY_SOCK@@"))
probe("path", lambda: connect(socket.AF_UNIX, "@@CANARY_PATHSOCK@@"))
probe("outside", lambda: connect(socket.AF_INET, ("192.0.2.1", 80)))
def env():
    if "@@CANARY_ENV@@" in os.environ: return os.environ
    raise KeyError
probe("env", env)
def procs():
    found = [open(p, "rb").read() for p in glob.glob("/proc/[0-9]*/cmdline")]
    if len(found) > 2 or any(b"@@CANARY_PROC@@" in f for f in found): return found
    raise KeyError
probe("processes", procs)
probe("init-environ", lambda: open("/proc/1/environ").read())
probe("init-memory", lambda: open("/proc/1/mem", "rb"))
probe("init-root", lambda: os.listdir("/proc/1/root"))
probe("init-fd", lambda: os.listdir("/proc/1/fd"))
probe("parent", lambda: os.kill(1, 9) or open("/proc/1/stat").read()[:0] or 1/0)
for d in ("/", "/usr", "/etc", "/dev", "/proc/sys/kernel", "/opt", "/usr/lib/python3"):
    probe("write " + d, lambda: open(d + "/x", "w"))
probe("remount", lambda: os.system("mount -o remount,rw / 2>/dev/null") and 1/0)
probe("kcore", lambda: open("/proc/kcore", "rb").read(1) or 1/0)
probe("keys", lambda: open("/proc/keys").read() or 1/0)
probe("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
probe("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "w"))
probe("disk", lambda: os.mknod("d", 0o60600, os.makedev(254, 0)))
probe("setuid", lambda: os.setuid(0))
print("fds", sorted(int(f) for f in os.listdir("/proc/self/fd")))
print("DONE", os.getpid())
`))
		if !strings.Contains(o.out, "DONE 2") {
			t.Fatalf("%v\n%s%s", o.Exit, o.out, o.err)
		}
		for line := range strings.Lines(o.out) {
			if strings.Contains(line, " OPEN") {
				t.Error(strings.TrimSpace(line))
			}
		}
		// 3 is the directory being listed.
		if !strings.Contains(o.out, "fds [0, 1, 2, 3]\n") {
			t.Errorf("descriptors: %s", o.out)
		}
		c.Unharmed(t, o.out, o.err)
	})
}

func TestEnvironmentIsWhole(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		o := python(t, h, `
import os, pwd, grp, getpass, tempfile, socket, threading, multiprocessing as mp
from multiprocessing import shared_memory
print(pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, getpass.getuser(), os.path.expanduser("~"), os.getcwd())
print(socket.gethostname(), socket.gethostbyname("localhost"))
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); print(os.path.dirname(f.name))
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
def serve():
    c, _ = s.accept(); c.sendall(b"over loopback"); c.close()
threading.Thread(target=serve).start()
print(socket.create_connection(s.getsockname()).recv(99).decode())
m = shared_memory.SharedMemory(create=True, size=4096); m.buf[0] = 7; print(m.buf[0]); m.close(); m.unlink()
def sq(x): return x * x
if __name__ == "__main__":
    with mp.Pool(2) as p: print(p.map(sq, range(6)))
print(sorted(os.listdir(".")), open("/dev/null").read() == "", len(os.urandom(4)))
`)
		want := "belljar belljar belljar /workspace /workspace\nbelljar 127.0.0.1\n/tmp\nover loopback\n7\n[0, 1, 4, 9, 16, 25]\n['main.py'] True 4\n"
		if o.out != want || o.Wait != 0 {
			t.Errorf("got %q, %s, %v", o.out, o.err, o.Wait)
		}
	})
}

// TestNetworkIsFresh: the network is made ahead of a run, so it must be shown that
// no run gets one that another has used.
func TestNetworkIsFresh(t *testing.T) {
	bothWays(t, func(t *testing.T, h *Host) {
		for i := range 3 {
			o := python(t, h, `
import socket
print([l.split()[1] for l in open("/proc/net/dev") if "lo:" in l])
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); c.sendall(b"x" * 1000); c.close()
print([int(l.split()[1]) > 1000 for l in open("/proc/net/dev") if "lo:" in l])
`)
			if o.out != "['0']\n[True]\n" {
				t.Errorf("run %d: %q %s", i, o.out, o.err)
			}
		}
	})
}
