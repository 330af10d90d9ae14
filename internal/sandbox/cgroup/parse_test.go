//go:build linux

package cgroup

import (
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mountsV1 = `23 1 254:0 / / rw,relatime - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
39 31 0:36 /docker/ab\040c /sys/fs/cgroup/pids ro,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
`

func TestParseMounts(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []mount
	}{
		{"version 1 and an empty version 2", mountsV1, []mount{
			{point: "/sys/fs/cgroup/cpu,cpuacct", root: "/", controllers: []string{"cpu", "cpuacct"}},
			{point: "/sys/fs/cgroup/memory", root: "/", controllers: []string{"memory"}},
			{point: "/sys/fs/cgroup/pids", root: "/docker/ab c", controllers: []string{"pids"}},
			{point: "/sys/fs/cgroup/unified", root: "/", v2: true},
		}},
		{"version 2", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n", []mount{{point: "/sys/fs/cgroup", root: "/", v2: true}}},
		{"no line end", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup rw", []mount{{point: "/sys/fs/cgroup", root: "/", v2: true}}},
		{"cut short", "26 23 0:22 / /sys/fs/cgroup rw - cgroup2\n26 23 - cgroup2 c rw\ncgroup2\n\n", nil},
		{"relative", "26 23 0:22 / sys rw - cgroup2 cgroup rw\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, parseMounts([]byte(c.in)), cmp.AllowUnexported(mount{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSelf(t *testing.T) {
	in := "9:name=systemd:/\n4:memory:/user.slice/a:b\n2:cpu,cpuacct:/c\nbad\n1::/d\n3:pids:relative\n0::/u\n"
	want := map[string]string{"name=systemd": "/", "memory": "/user.slice/a:b", "cpu": "/c", "cpuacct": "/c", "": "/u"}
	if diff := cmp.Diff(want, parseSelf([]byte(in))); diff != "" {
		t.Error(diff)
	}
}

func TestBeneath(t *testing.T) {
	for _, c := range []struct{ name, root, group, want string }{
		{"all is mounted", "/", "/a/b", "/a/b"},
		{"top", "/", "/", "/"},
		{"container sees its own part", "/docker/x", "/docker/x", "/"},
		{"and we are below", "/docker/x", "/docker/x/y", "/y"},
		{"like it, but not it", "/docker/x", "/docker/xy", "/"},
		{"outside", "/docker/x", "/other", "/"},
		{"outside of our namespace", "/", "/../../other", "/"},
		{"climbing", "/docker/x", "/docker/x/../../../etc", "/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := beneath(c.root, c.group); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFindHierarchies(t *testing.T) {
	self := t.TempDir()
	root := t.TempDir()
	for name, data := range map[string]string{
		self + "/mountinfo": mountsV1 + "50 23 0:32 / /elsewhere rw - cgroup cgroup rw,memory\n", // a second sight of the same tree
		self + "/cgroup":    "5:cpu,cpuacct:/s\n4:memory:/s\n3:pids:/docker/ab c/z\n0::/s\n",
	} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(root+"/unified", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/unified/cgroup.controllers", []byte("hugetlb misc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := findHierarchies(Config{Root: root, ProcSelf: self})
	if err != nil {
		t.Fatal(err)
	}
	want := []*hierarchy{
		{v2: true, dir: root + "/unified", own: "/s"},
		{controllers: []string{"cpu", "cpuacct"}, dir: root + "/cpu,cpuacct", own: "/s"},
		{controllers: []string{"memory"}, dir: root + "/memory", own: "/s"},
		{controllers: []string{"pids"}, dir: root + "/pids", own: "/z"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
		t.Error(diff)
	}
}

func TestParseNumber(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"42\n", 42, true},
		{"max\n", math.MaxInt64, true},
		{"18446744073709551615\n", math.MaxInt64, true},
		{"104857600\n7\n", 104857600, true},
		{"-1\n", -1, true},
		{"", 0, false},
		{"12a\n", 0, false},
		{"-99999999999999999999\n", 0, false},
	} {
		if n, err := parseNumber([]byte(c.in)); n != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %d, %v", c.in, n, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	const in = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"
	if n, err := parseKey([]byte(in), "oom_kill"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, key := range []string{"oom", "kill", "", "7"} {
		if n, err := parseKey([]byte(in), key); err == nil {
			t.Errorf("key %q: %d", key, n)
		}
	}
}

func TestParsePids(t *testing.T) {
	got, err := parsePids([]byte("12\n0\n7\n\n"))
	if diff := cmp.Diff([]int{12, 7}, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, in := range []string{"x\n", "-1\n", "1 2\n", "99999999999999999999\n"} {
		if got, err := parsePids([]byte(in)); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestParseGroupName(t *testing.T) {
	for _, c := range []struct {
		name string
		want owner
		part string
		ok   bool
	}{
		{"belljar-12-345-1", owner{12, 345}, "1", true},
		{"belljar-12-345-leaf", owner{12, 345}, "leaf", true},
		{"belljar-12-345", owner{}, "", false},
		{"belljar-12-345-", owner{}, "", false},
		{"belljar-12-345-0", owner{}, "", false},
		{"belljar-12-345-1-2", owner{}, "", false},
		{"belljar-012-345-1", owner{}, "", false},
		{"belljar-12-+345-1", owner{}, "", false},
		{"belljar-12-345-01", owner{}, "", false},
		{"belljar-0-345-1", owner{}, "", false},
		{"belljar--12-345-1", owner{}, "", false},
		{"belljar-4294967297-345-1", owner{}, "", false},
		{"belljar-test-345-1", owner{}, "", false},
		{"Belljar-12-345-1", owner{}, "", false},
		{"xbelljar-12-345-1", owner{}, "", false},
		{"belljar-12-345-1 ", owner{}, "", false},
	} {
		o, part, ok := parseGroupName(c.name)
		if o != c.want || part != c.part || ok != c.ok {
			t.Errorf("%q: %v %q %t", c.name, o, part, ok)
		}
	}
}

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21\n"
	for _, c := range []struct {
		name, in string
		start    uint64
		state    byte
		ok       bool
	}{
		{"plain", "7 (sh)" + tail, 98765, 'S', true},
		{"name with brackets", "7 (a) R 1 (b) c)" + tail, 98765, 'S', true},
		{"zombie", "7 (sh) Z" + tail[2:], 98765, 'Z', true},
		{"no name", "7 sh", 0, 0, false},
		{"short", "7 (sh) S 1 2 3", 0, 0, false},
		{"empty", "", 0, 0, false},
		{"start is no number", "7 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x", 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			start, state, err := parseStat([]byte(c.in))
			if start != c.start || state != c.state || (err == nil) != c.ok {
				t.Errorf("%d %c %v", start, state, err)
			}
		})
	}
	if o, err := selfOwner(); err != nil || !o.alive() {
		t.Errorf("ourselves: %v, %v", o, err)
	}
	if (owner{pid: os.Getpid(), start: 1}).alive() {
		t.Error("another process with our id is alive")
	}
}

// What the kernel writes is parsed without trust: mount points and group names
// are other people's words.
func FuzzParse(f *testing.F) {
	f.Add([]byte(mountsV1))
	f.Add([]byte("4:memory:/a:b\n0::/x\n"))
	f.Add([]byte("oom_kill 7\nmax 3\n"))
	f.Add([]byte("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765\n"))
	f.Add([]byte("belljar-12-345-1"))
	f.Add([]byte(`1 2 3 /a\1 /b\777\040 rw - cgroup2 x y`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range parseMounts(data) {
			if m.point[0] != '/' || m.root[0] != '/' || m.v2 == (len(m.controllers) > 0) {
				t.Errorf("mount %+v", m)
			}
		}
		for c, g := range parseSelf(data) {
			if b := beneath("/root", g); b[0] != '/' {
				t.Errorf("group %q of %q: %q", g, c, b)
			}
		}
		if o, part, ok := parseGroupName(string(data)); ok && o.groupName(part) != string(data) {
			t.Errorf("name %q is not %v %q", data, o, part)
		}
		if pids, err := parsePids(data); err == nil {
			for _, p := range pids {
				if p <= 0 {
					t.Errorf("process id %d", p)
				}
			}
		}
		if _, state, err := parseStat(data); err == nil && state == 0 {
			t.Error("a process without a state")
		}
		if n, err := parseKey(data, "oom_kill"); err != nil && n != 0 {
			t.Errorf("%d with %v", n, err)
		}
	})
}
