package rootfs

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/initproc"
)

// host makes a small tree that looks like a host's root.
func host(t *testing.T, merged bool) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "usr/lib", "proc/acpi", "proc/sys", "etc/alternatives"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"proc/kcore", "proc/keys", "etc/ld.so.cache", "etc/shadow"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin", "lib"} {
		var err error
		if merged {
			err = os.Symlink("usr/"+name, filepath.Join(root, name))
		} else {
			err = os.Mkdir(filepath.Join(root, name), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func find(p *Plan, target string) *Step {
	for i := range p.Steps {
		if p.Steps[i].Target == target {
			return &p.Steps[i]
		}
	}
	return nil
}

func TestNew(t *testing.T) {
	for _, merged := range []bool{true, false} {
		p, err := New(host(t, merged))
		if err != nil {
			t.Fatal(err)
		}
		if s := find(p, "/bin"); s == nil || merged && (s.Op != OpLink || s.Source != "usr/bin") || !merged && s.Op != OpDir {
			t.Errorf("merged %t: /bin is %+v", merged, s)
		}
		for _, absent := range []string{"/lib64", "/etc/shadow", "/etc/ssl/certs", "/home", "/root", "/sys", "/run"} {
			if s := find(p, absent); s != nil {
				t.Errorf("merged %t: %+v", merged, s)
			}
		}
		if s := find(p, "/etc/ld.so.cache"); s == nil || s.Op != OpBind || s.IsDir {
			t.Errorf("ld.so.cache is %+v", s)
		}
		want := []Mask{{"/proc/acpi", true}, {"/proc/kcore", false}, {"/proc/keys", false}}
		if len(p.Masks) != len(want) || p.Masks[0] != want[0] || p.Masks[1] != want[1] || p.Masks[2] != want[2] {
			t.Errorf("masks %v", p.Masks)
		}
		orderly(t, p)
	}
	if _, err := New(t.TempDir()); err == nil {
		t.Error("a host without /usr was accepted")
	}
}

// orderly says that every step finds its parent folder made, and that nothing is
// made twice or inside what is bound.
func orderly(t *testing.T, p *Plan) {
	t.Helper()
	made := map[string]bool{"/": true}
	var bound []string
	for _, s := range p.Steps {
		if !made[path.Dir(s.Target)] {
			t.Errorf("%s is made before its folder", s.Target)
		}
		for _, b := range bound {
			if strings.HasPrefix(s.Target, b+"/") {
				t.Errorf("%s lies inside the bound %s", s.Target, b)
			}
		}
		if s.Op == OpDir {
			if made[s.Target] {
				t.Errorf("%s is made twice", s.Target)
			}
			made[s.Target] = true
		}
		if s.Op == OpBind && s.IsDir {
			bound = append(bound, s.Target)
		}
	}
}

func TestWith(t *testing.T) {
	base, err := New(host(t, true))
	if err != nil {
		t.Fatal(err)
	}
	steps := len(base.Steps)
	q, err := base.With([]string{"/usr/local/python", "/opt/python", "/tmp/env", "/tmp/other"}, map[string][]byte{"/opt/belljar/a/b.py": []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	orderly(t, q)
	if len(base.Steps) != steps || find(base, "/opt/python") != nil {
		t.Error("With changed the shared plan")
	}
	if find(q, "/usr/local/python") != nil {
		t.Error("what /usr shows already is bound again")
	}
	if len(q.Late) != 2 || q.Late[0].Target != "/tmp/env" || q.Late[1].Target != "/tmp/other" || q.Late[0].Source == q.Late[1].Source {
		t.Errorf("folders below /tmp: %+v", q.Late)
	}
	if s := find(q, "/opt/belljar/a/b.py"); s == nil || s.Op != OpFile || string(s.Data) != "x" {
		t.Errorf("asset: %+v", s)
	}
	again, err := base.With([]string{"/srv/tool"}, nil)
	if err != nil || find(again, "/opt/python") != nil {
		t.Errorf("a second plan has the first one's folders: %v", err)
	}

	for _, dir := range []string{"", "relative", "/", "/home", "/home/somebody", "/opt", "/etc", "/proc/1", "/sys/x", "/dev/x", "/workspace/x", "/opt/../root", "/opt/x/", "/opt/a\x00b"} {
		var refusal *belljar.Refusal
		if _, err := base.With([]string{dir}, nil); !errors.As(err, &refusal) {
			t.Errorf("toolchain folder %q: %v", dir, err)
		}
	}
	for _, name := range []string{"a", "/etc/x", "/opt/belljar", "/opt/belljar/../x", "/opt/belljar/x/../../y", "/opt/belljar/a\x00"} {
		if _, err := base.With(nil, map[string][]byte{name: nil}); err == nil {
			t.Errorf("asset %q was accepted", name)
		}
	}
}

// FuzzWith: whatever folders a configuration names, the plan is refused or in order,
// and can be turned into a table.
func FuzzWith(f *testing.F) {
	for _, s := range []string{"/opt/python", "/tmp/a/b", "/usr/lib/x", "/home/x/.pyenv/versions/3", "//", "/a/./b", "/a\x00"} {
		f.Add(s, "/opt/belljar/x")
	}
	base, err := New("/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, dir, asset string) {
		p, err := base.With([]string{dir}, map[string][]byte{asset: nil})
		if err != nil {
			return
		}
		orderly(t, p)
		for _, devices := range []bool{true, false} {
			tab := initproc.New()
			p.Shared(tab, Options{Base: "/tmp", Devices: devices})
			p.Own(tab, Own{DiskBytes: 1 << 20, Inodes: 10, Owner: 1000})
		}
	})
}
