package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/languages"
	"github.com/google/go-cmp/cmp"
)

func TestFindPlain(t *testing.T) {
	m := newMachine(t)
	path := m.fake("py/bin/fake3", answer{Version: "3.11.2", Packages: []string{filepath.Join(m.dir, "py/lib"), "/usr/lib", filepath.Join(m.dir, "src")}}, behaviour{})
	m.link(path, "bin/fake")
	got := m.find(m.finder(nil), lang(t, "/nowhere/moon", "fake"))
	want := &Toolchain{Lang: "moon", Version: "3.11.2", Path: path, Folders: []string{filepath.Join(m.dir, "py")}, Hidden: []string{filepath.Join(m.dir, "src")}}
	// Called by the link, it says that it is the file.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindOrder(t *testing.T) {
	m := newMachine(t)
	first := m.fake("a/bin/fakea", answer{Version: "3.9"}, behaviour{})
	m.fake("b/bin/fakeb", answer{Version: "3.12"}, behaviour{})
	m.link(filepath.Join(m.dir, "b/bin/fakeb"), "bin/fakeb")
	l := lang(t, first, "fakeb")
	if got := m.find(m.finder(nil), l); got.Path != first {
		t.Errorf("found %s", got.Path)
	}
	if n := len(m.calls("b/bin/fakeb")); n != 0 {
		t.Errorf("the second candidate was asked %d times", n)
	}
}

func TestFindPassesBroken(t *testing.T) {
	m := newMachine(t)
	broken := m.fake("a/bin/fakebroken", answer{}, behaviour{Exit: 3, Stderr: "no module json\n"})
	old := m.fake("b/bin/fakeold", answer{}, behaviour{Exit: 2, Version: "Moon 2.7.18\n"})
	good := m.fake("c/bin/fakegood", answer{Version: "3.10"}, behaviour{})
	l := lang(t, broken, old, good)
	if got := m.find(m.finder(nil), l); got.Path != good {
		t.Errorf("found %s", got.Path)
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		make   func(m *machine) (Config, *language.Language)
		reason string
		hint   string
	}{
		{"nothing", func(m *machine) (Config, *language.Language) { return nil, lang(m.t, "/nowhere/moon", "moon") },
			"no toolchain for moon was found on this machine.", "Install it with: apt-get install moon"},
		{"too old", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake2", answer{}, behaviour{Exit: 2, Version: "Moon 2.7.18"}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake2 is version 2.7.18, and 3.8 or newer is needed.", "Install it with: apt-get install moon"},
		{"too old by its probe", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.7.9"}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake3 is version 3.7.9, and 3.8 or newer is needed.", "Install it with: apt-get install moon"},
		{"broken", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{}, behaviour{Exit: 1, Version: "Moon 3.11", Stderr: "Traceback\nno module json\n"}))
		}, `no toolchain for moon works on this machine: DIR/a/bin/fake3 failed to start (exit status 1): "no module json".`, "Install it with: apt-get install moon"},
		{"babbling", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{}, behaviour{Probe: "hello", Version: "Moon 3.11"}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake3 answered the probe with no JSON.", "Install it with: apt-get install moon"},
		{"configured but missing", func(m *machine) (Config, *language.Language) {
			return Config{"moon": {Interpreter: filepath.Join(m.dir, "venv/bin/moon")}}, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{}))
		}, "the configured interpreter of moon does not work: DIR/venv/bin/moon does not exist.", "Correct interpreter under [languages.moon], or remove it to use this machine's own."},
		{"configured but a folder", func(m *machine) (Config, *language.Language) {
			return Config{"moon": {Interpreter: filepath.Join(m.dir, "home")}}, lang(m.t, "x")
		}, "the configured interpreter of moon does not work: DIR/home cannot be run (permission denied).", "Correct interpreter under [languages.moon], or remove it to use this machine's own."},
		{"lives in a home", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("home/ann/bin/fake3", answer{Version: "3.11"}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/home/ann/bin/fake3 cannot be used: it lives in DIR/home/ann, and a home folder is never shown to a run; use a virtual environment in a folder of its own.", "Install it with: apt-get install moon"},
		{"lives above homes", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("home/bin/fake3", answer{Version: "3.11"}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/home/bin/fake3 cannot be used: it lives in DIR/home, and a home folder is never shown to a run; use a virtual environment in a folder of its own.", "Install it with: apt-get install moon"},
		{"names everything", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.11", Folders: []string{"/"}}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake3 cannot be used: it lives in /, which is too wide to be shown to a run.", "Install it with: apt-get install moon"},
		{"names the system's settings", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.11", Folders: []string{"/etc/ssl"}}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake3 cannot be used: it lives in /etc/ssl, which is never shown to a run.", "Install it with: apt-get install moon"},
		{"names a link to a home", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.11", Folders: []string{m.link(filepath.Join(m.dir, "home/ann"), "innocent")}}, behaviour{}))
		}, "no toolchain for moon works on this machine: DIR/a/bin/fake3 cannot be used: it lives in DIR/home/ann, and a home folder is never shown to a run; use a virtual environment in a folder of its own.", "Install it with: apt-get install moon"},
		{"names a relative folder", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.fake("a/bin/fake3", answer{Version: "3.11", Folders: []string{"lib"}}, behaviour{}))
		}, `no toolchain for moon works on this machine: DIR/a/bin/fake3 cannot be used: it names "lib" as its folder, which is no absolute path.`, "Install it with: apt-get install moon"},
		{"a shim to nowhere", func(m *machine) (Config, *language.Language) {
			return nil, lang(m.t, m.write("a/shims/moon", "#!/bin/sh\necho '{\"version\":\"3.11\",\"executable\":\"'$0'\"}'\n", 0o755))
		}, "no toolchain for moon works on this machine: DIR/a/shims/moon is a script that does not lead to an interpreter.", "Install it with: apt-get install moon"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMachine(t)
			cfg, l := tt.make(m)
			_, err := m.finder(cfg).Find(context.Background(), l)
			var got *belljar.Refusal
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no refusal", err)
			}
			got.Reason = strings.ReplaceAll(got.Reason, m.dir, "DIR")
			if diff := cmp.Diff(&belljar.Refusal{Code: belljar.CodeNoToolchain, Reason: tt.reason, Hint: tt.hint}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			check := m.finder(cfg).Checks(context.Background(), []*language.Language{l})
			if len(check) != 1 || check[0].State != belljar.CheckFail || check[0].Remedy != tt.hint {
				t.Errorf("check %+v", check)
			}
		})
	}
}

func TestShim(t *testing.T) {
	m := newMachine(t)
	real := m.fake("home/ann/.moonenv/versions/3.12/bin/fake3", answer{Version: "3.12.1"}, behaviour{})
	shim := m.write("home/ann/.moonenv/shims/moon", fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", real), 0o755)
	choice := m.write("home/ann/.moonenv/version", "3.12\n", 0o644)
	m.env["PATH"] = filepath.Dir(shim)
	l := lang(t, "moon")
	want := &Toolchain{Lang: "moon", Version: "3.12.1", Path: real, Folders: []string{filepath.Join(m.dir, "home/ann/.moonenv/versions/3.12")}}
	if diff := cmp.Diff(want, m.find(m.finder(nil), l)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	calls := len(m.calls("home/ann/.moonenv/versions/3.12/bin/fake3"))
	m.find(m.finder(nil), l)
	if n := len(m.calls("home/ann/.moonenv/versions/3.12/bin/fake3")); n != calls {
		t.Errorf("a warm start called the interpreter %d times", n-calls)
	}

	// Another version is chosen; the shim stays the same file.
	other := m.fake("home/ann/.moonenv/versions/3.13/bin/fake3", answer{Version: "3.13.0"}, behaviour{})
	m.write("home/ann/.moonenv/shims/moon", fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", other), 0o755)
	if err := os.WriteFile(choice, []byte("3.13.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := m.find(m.finder(nil), l); got.Path != other {
		t.Errorf("after the choice changed: %s", got.Path)
	}

	// Anything that is no shim is preferred, even behind it on PATH.
	m.fake("dist/bin/fakeplain", answer{Version: "3.9"}, behaviour{})
	m.link(filepath.Join(m.dir, "dist/bin/fakeplain"), "bin/moon")
	m.env["PATH"] = filepath.Dir(shim) + ":" + filepath.Join(m.dir, "bin")
	if got := m.find(m.finder(nil), lang(t, "moon", filepath.Join(m.dir, "dist/bin/fakeplain"))); got.Version != "3.9" {
		t.Errorf("found %+v", got)
	}
}

func TestEnvironmentOfProbe(t *testing.T) {
	m := newMachine(t)
	path := m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{})
	m.env["PYENV_ROOT"] = "/x"
	m.find(m.finder(nil), lang(t, path))
	for _, call := range m.calls("a/bin/fake3") {
		if strings.Contains(call, "canary") || strings.Contains(call, "PYENV") {
			t.Errorf("the probe sees the operator's environment: %s", call)
		}
	}
	real := m.fake("b/bin/fake3", answer{Version: "3.12"}, behaviour{})
	m.find(m.finder(nil), lang(t, m.write("x/shims/moon", fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", real), 0o755)))
	calls := strings.Join(m.calls("b/bin/fake3"), "\n")
	if strings.Contains(calls, "canary") || !strings.Contains(calls, "PYENV_ROOT=/x") {
		t.Errorf("environment of a shim: %s", calls)
	}
}

func TestVirtualEnvironment(t *testing.T) {
	m := newMachine(t)
	base := m.fake("home/ann/.local/moon-3.12.4/bin/fake3", answer{}, behaviour{Probe: "{}"})
	m.link(filepath.Join(m.dir, "home/ann/.local/moon-3.12.4"), "home/ann/.local/moon-3.12") // as uv lays it out
	venv := m.link(filepath.Join(m.dir, "home/ann/.local/moon-3.12/bin/fake3"), "home/ann/project/.venv/bin/fakevenv")
	m.write("home/ann/project/.venv/pyvenv.cfg", "home = x\n", 0o644)
	probe, err := json.Marshal(answer{Version: "3.12.4", Executable: venv, Isolated: true, Folders: []string{
		filepath.Join(m.dir, "home/ann/project/.venv"), filepath.Join(m.dir, "home/ann/.local/moon-3.12.4")}})
	if err != nil {
		t.Fatal(err)
	}
	say, err := json.Marshal(behaviour{Probe: string(probe)})
	if err != nil {
		t.Fatal(err)
	}
	m.write("home/ann/project/.venv/bin/fakevenv.json", string(say), 0o644)
	cfg := Config{"moon": {Interpreter: venv}}
	l := lang(t, base)
	want := &Toolchain{Lang: "moon", Version: "3.12.4", Path: venv, Folders: []string{
		filepath.Join(m.dir, "home/ann/.local/moon-3.12"), filepath.Join(m.dir, "home/ann/.local/moon-3.12.4"), filepath.Join(m.dir, "home/ann/project/.venv")}}
	if diff := cmp.Diff(want, m.find(m.finder(cfg), l)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}

	// Made anew, it is asked anew.
	n := len(m.calls("home/ann/project/.venv/bin/fakevenv"))
	m.find(m.finder(cfg), l)
	if got := len(m.calls("home/ann/project/.venv/bin/fakevenv")); got != n {
		t.Errorf("asked %d times more though nothing changed", got-n)
	}
	m.write("home/ann/project/.venv/pyvenv.cfg", "home = somewhere else\n", 0o644)
	m.find(m.finder(cfg), l)
	if got := len(m.calls("home/ann/project/.venv/bin/fakevenv")); got != n+1 {
		t.Errorf("asked %d times after the environment was made anew", got-n)
	}
}

func TestRunnableAndChecks(t *testing.T) {
	m := newMachine(t)
	path := m.fake("a/bin/fake3", answer{Version: "3.11", Packages: []string{filepath.Join(m.dir, "src")}}, behaviour{})
	f := m.finder(nil)
	all := []*language.Language{lang(t, path)}
	if diff := cmp.Diff([]string{"moon"}, f.Runnable(context.Background(), all)); diff != "" {
		t.Error(diff)
	}
	got := f.Checks(context.Background(), all)
	if len(got) != 1 || got[0].State != belljar.CheckWarn || !strings.Contains(got[0].Meaning, filepath.Join(m.dir, "src")) {
		t.Errorf("checks %+v", got)
	}
}

func TestConfigProblems(t *testing.T) {
	got := Config{"moon": {Interpreter: "bin/moon"}, "mooon": {}}.Problems([]string{"moon", "sun"})
	want := []string{`languages.moon.interpreter: "bin/moon" is no absolute path`, "languages.mooon: there is no such language; known are moon, sun"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOlder(t *testing.T) {
	for _, tt := range []struct {
		version, minimum string
		want             bool
	}{{"3.8", "3.8", false}, {"3.8.0", "3.8", false}, {"3.7.16", "3.8", true}, {"3.10", "3.8", false}, {"4", "3.8", false}, {"3", "3.8", true}, {"3.13.0rc1", "3.13", false}, {"3.8rc1", "3.8", false}, {"", "3.8", true}, {"x", "3.8", true}, {"1", "", false}} {
		if got := older(tt.version, tt.minimum); got != tt.want {
			t.Errorf("older(%q, %q) = %v", tt.version, tt.minimum, got)
		}
	}
}

func TestLoopOfLinks(t *testing.T) {
	m := newMachine(t)
	a := m.link(filepath.Join(m.dir, "b"), "a")
	m.link(a, "b")
	if _, err := hops(a); err == nil {
		t.Error("a loop has an end")
	}
}

// The interpreter of this machine, as it is.
func TestRealPython(t *testing.T) {
	r, err := language.Open(languages.FS)
	if err != nil {
		t.Fatal(err)
	}
	py, err := r.Resolve("python", nil)
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	tc, err := New(nil, state).Find(context.Background(), py)
	if err != nil {
		t.Fatal(err)
	}
	if isShim(tc.Path) {
		t.Errorf("%s is a shim", tc.Path)
	}
	if info, err := os.Lstat(tc.Path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%s is not the real binary: %v", tc.Path, err)
	}

	// A virtual environment over it: its own packages come first.
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command(tc.Path, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("make a virtual environment: %v\n%s", err, out)
	}
	in, err := New(Config{"python": {Interpreter: filepath.Join(venv, "bin/python")}}, state).Find(context.Background(), py)
	if err != nil {
		t.Fatal(err)
	}
	if in.Path != filepath.Join(venv, "bin/python") || in.Version != tc.Version {
		t.Errorf("found %+v", in)
	}
	if !contains(in.Folders, venv) {
		t.Errorf("folders %v do not hold %s", in.Folders, venv)
	}
}
