package language

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/languages"
	"github.com/google/go-cmp/cmp"
)

// good is a complete entry; NAME stands for the folder.
const good = `
name = "NAME"
aliases = ["ALIAS"]
summary = "a language"
extensions = [".EXT"]
shebang = ["NAME"]
file = "main.EXT"
[toolchain]
candidates = ["/usr/bin/NAME", "NAME"]
version = ["-V"]
version_pattern = 'v(\d+)'
[run]
argv = ["{interpreter}", "-q", "./{file}"]
env = { MODE = "quiet" }
[install]
debian = "apt-get install NAME"
default = "Install NAME."
`

func entryText(name, alias, ext string) *fstest.MapFile {
	text := strings.NewReplacer("NAME", name, "ALIAS", alias, "EXT", ext).Replace(good)
	return &fstest.MapFile{Data: []byte(text)}
}

func three(t *testing.T) *Registry {
	t.Helper()
	r, err := Open(fstest.MapFS{
		"lua/language.toml":  entryText("lua", "luajit", "lua"),
		"ruby/language.toml": entryText("ruby", "rb", "rb"),
		"bash/language.toml": entryText("bash", "sh", "sh"),
		"README.md":          {Data: []byte("not a language")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEmbedded(t *testing.T) {
	r, err := Open(languages.FS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.All(); err != nil {
		t.Fatal(err)
	}
	py, err := r.Resolve("python", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !py.Scripts() {
		t.Error("python scripts cannot call tools")
	}
	assets, err := py.Assets()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range assets {
		if len(a.Data) == 0 {
			t.Errorf("%s is empty", a.Name)
		}
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"/opt/belljar/python/sitecustomize.py", "/opt/belljar/python/belljar_tools.py"}, names); diff != "" {
		t.Error(diff)
	}
	if got := py.FindVersion("Python 3.11.2\n"); got != "3.11.2" {
		t.Errorf("version %q", got)
	}
	args, err := py.ProbeArgs()
	if err != nil || len(args) != 3 || !strings.Contains(args[2], "json.dumps") {
		t.Errorf("probe %q, %v", args, err)
	}
}

func TestResolve(t *testing.T) {
	r := three(t)
	for _, tt := range []struct{ ask, want string }{
		{"lua", "lua"}, {"LUA", "lua"}, {" ruby ", "ruby"}, {"luajit", "lua"}, {"Rb", "ruby"}, {"sh", "bash"},
	} {
		l, err := r.Resolve(tt.ask, nil)
		if err != nil || l.Name != tt.want {
			t.Errorf("Resolve(%q) = %v, %v; want %s", tt.ask, l, err, tt.want)
		}
	}
}

func TestResolveUnknown(t *testing.T) {
	r := three(t)
	some := func() []string { return []string{"lua", "ruby"} }
	for _, tt := range []struct {
		name, ask    string
		runnable     func() []string
		reason, hint string
	}{
		{"far", "cobol", some, "cannot run 'cobol': there is no such language.", "Languages that run here: lua, ruby."},
		{"near", "rubby", some, "cannot run 'rubby': there is no such language.", "Did you mean 'ruby'? Languages that run here: lua, ruby."},
		{"near an alias", "luajot", some, "cannot run 'luajot': there is no such language.", "Did you mean 'lua'? Languages that run here: lua, ruby."},
		{"nothing runs", "x", func() []string { return nil }, "cannot run 'x': there is no such language.", "No language can run on this machine."},
		{"nobody asked what runs", "cobol", nil, "cannot run 'cobol': there is no such language.", "Languages that run here: bash, lua, ruby."},
		{"empty", "", some, "cannot run '': there is no such language.", "Languages that run here: lua, ruby."},
		{"a path", "../../etc", some, "cannot run '../../etc': there is no such language.", "Languages that run here: lua, ruby."},
		{"control characters", "a\x1b[2J\n", some, "cannot run 'a?[2J?': there is no such language.", "Languages that run here: lua, ruby."},
		{"long", strings.Repeat("x", 5000), some, "cannot run '" + strings.Repeat("x", 40) + "…': there is no such language.", "Languages that run here: lua, ruby."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Resolve(tt.ask, tt.runnable)
			var got *belljar.Refusal
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no refusal", err)
			}
			want := &belljar.Refusal{Code: belljar.CodeUnknownLanguage, Reason: tt.reason, Hint: tt.hint}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestByExtension(t *testing.T) {
	r := three(t)
	for file, want := range map[string]string{"a.lua": "lua", "dir/B.RB": "ruby", "a.sh": "bash", "a.txt": "", "lua": "", ".": "", "": "", "a.": ""} {
		got := ""
		if l := r.ByExtension(file); l != nil {
			got = l.Name
		}
		if got != want {
			t.Errorf("ByExtension(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestByShebang(t *testing.T) {
	r := three(t)
	for source, want := range map[string]string{
		"#!/usr/bin/lua\nprint(1)":              "lua",
		"#!/usr/bin/lua5.4\n":                   "lua",
		"#!/usr/bin/env ruby":                   "ruby",
		"#! /usr/bin/env -S FOO=1 ruby3.1 -w\n": "ruby",
		"#!/bin/bash -eu":                       "bash",
		"#!/bin/zsh":                            "",
		"#!":                                    "",
		"#!/usr/bin/env":                        "",
		"print(1)":                              "",
		"\n#!/usr/bin/lua":                      "",
		"":                                      "",
	} {
		got := ""
		if l := r.ByShebang(source); l != nil {
			got = l.Name
		}
		if got != want {
			t.Errorf("ByShebang(%q) = %q, want %q", source, got, want)
		}
	}
}

func TestUse(t *testing.T) {
	l, err := three(t).Resolve("lua", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/usr/bin/lua5.4", "-q", "./main.lua", "{file}"}, l.Argv("/usr/bin/lua5.4", "main.lua", []string{"{file}"})); diff != "" {
		t.Errorf("argv: %s", diff)
	}
	if l.Scripts() {
		t.Error("a language without [script] runs scripts")
	}
	if got := l.FindVersion("nothing"); got != "" {
		t.Errorf("version %q", got)
	}
	if got := l.InstallHint([]string{"ubuntu", "debian"}); got != "Install it with: apt-get install lua" {
		t.Errorf("hint %q", got)
	}
	if got := l.InstallHint(nil); got != "Install lua." {
		t.Errorf("hint %q", got)
	}
	if args, err := l.ProbeArgs(); args != nil || err != nil {
		t.Errorf("probe %v, %v", args, err)
	}
}

func TestProblems(t *testing.T) {
	with := func(old, new string) *fstest.MapFile {
		text := string(entryText("lua", "luajit", "lua").Data)
		if !strings.Contains(text, old) {
			panic("no " + old)
		}
		return &fstest.MapFile{Data: []byte(strings.Replace(text, old, new, 1))}
	}
	const f = "lua/language.toml: "
	for _, tt := range []struct {
		name string
		file *fstest.MapFile
		want []string
	}{
		{"unknown key", with("[run]", "[run]\nfoo = 1"), []string{f + "run.foo: unknown key"}},
		{"unknown table", with("[install]", "[compile]\nargv = []\n[install]"), []string{f + "compile.argv: unknown key", f + "compile: unknown key"}},
		{"no TOML", &fstest.MapFile{Data: []byte("name = \"lua\"\n= 3")}, []string{"lua/language.toml:2: "}},
		{"wrong type", with(`"./{file}"]`, `3]`), []string{"run.argv"}},
		{"everything missing", &fstest.MapFile{}, []string{
			f + "name: is \"\" but the folder is \"lua\"", f + "name: \"\" is not made of a-z, 0-9, +, # and -", f + "summary: must be one line of text",
			f + "file: \"\" must be the name of a file", f + "toolchain.candidates: is empty", f + "toolchain.version: is missing, and there is no probe",
			f + "run.argv: must begin with {interpreter}", f + "run.argv: does not name {file}", f + "install.default: is missing: somebody's system is not in the list"}},
		{"another name", with(`name = "lua"`, `name = "moon"`), []string{f + `name: is "moon" but the folder is "lua"`}},
		{"alias with a space", with(`"luajit"`, `"lua jit"`), []string{f + `aliases: "lua jit" is not`}},
		{"extension without a dot", with(`".lua"`, `"lua"`), []string{f + `extensions: "lua" must be`}},
		{"shebang with a version", with(`shebang = ["lua"]`, `shebang = ["lua5"]`), []string{f + `shebang: "lua5" must be`}},
		{"file in a folder", with(`"main.lua"`, `"a/main.lua"`), []string{f + `file: "a/main.lua" must be`}},
		{"file like an option", with(`"main.lua"`, `"-c"`), []string{f + `file: "-c" must be`}},
		{"relative candidate", with(`"/usr/bin/lua"`, `"bin/lua"`), []string{f + `toolchain.candidates: "bin/lua" is neither`}},
		{"bad pattern", with(`'v(\d+)'`, `'v(\d+'`), []string{f + "toolchain.version_pattern: error parsing"}},
		{"pattern without a group", with(`'v(\d+)'`, `'v'`), []string{f + "toolchain.version_pattern: has 0 groups"}},
		{"version without a pattern", with(`version_pattern = 'v(\d+)'`, ``), []string{f + "toolchain.version: and version_pattern belong together"}},
		{"probe without a file", with(`[run]`, "probe = [\"-c\"]\n[run]"), []string{f + "toolchain.probe: and probe_file belong together"}},
		{"probe file missing", with(`[run]`, "probe = [\"-c\"]\nprobe_file = \"probe.lua\"\n[run]"), []string{f + `toolchain.probe_file: there is no file "probe.lua"`}},
		{"probe file elsewhere", with(`[run]`, "probe = [\"-c\"]\nprobe_file = \"../x\"\n[run]"), []string{f + `toolchain.probe_file: there is no file "../x"`}},
		{"bad minimum", with(`[run]`, "minimum = \"new\"\n[run]"), []string{f + `toolchain.minimum: "new" is no version`}},
		{"script elsewhere", with(`[install]`, "[script]\nfolder = \"/opt/belljar/../x\"\nassets = [\"language.toml\"]\n[install]"), []string{f + `script.folder: "/opt/belljar/../x" is not beneath`}},
		{"script without assets", with(`[install]`, "[script]\nfolder = \"/opt/belljar/lua\"\n[install]"), []string{f + "script.assets: is empty"}},
		{"assets without a folder", with(`[install]`, "[script]\nassets = [\"a\"]\n[install]"), []string{f + "script.folder: is missing"}},
		{"environment", with(`MODE = "quiet"`, `"A=B" = "x"`), []string{f + `run.env: "A=B" cannot be set`}},
		{"negative limits", with(`[install]`, "[limits]\nruntime_processes = -1\nopen_files = -1\n[install]"), []string{f + "limits.runtime_processes: is negative", f + "limits.open_files: is negative"}},
		{"bad size", with(`[install]`, "[limits]\nmemory = \"much\"\n[install]"), []string{`"much" is no size`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Open(fstest.MapFS{"lua/language.toml": tt.file})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.All()
			var got Problems
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no Problems", err)
			}
			if len(got) != len(tt.want) {
				t.Errorf("%d problems, want %d", len(got), len(tt.want))
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in:\n%v", want, err)
				}
			}
		})
	}
}

// A broken file hides nothing but itself, and names all that is wrong at once.
func TestBrokenNeighbour(t *testing.T) {
	r, err := Open(fstest.MapFS{
		"lua/language.toml": entryText("lua", "luajit", "lua"),
		"bad/language.toml": {Data: []byte("name = 3")},
		"none/readme":       {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := r.Resolve("luajit", nil); err != nil || l.Name != "lua" {
		t.Errorf("Resolve = %v, %v", l, err)
	}
	if _, err := r.Resolve("bad", nil); err == nil {
		t.Error("a broken entry was given out")
	}
	_, err = r.All()
	if err == nil || !strings.Contains(err.Error(), "bad/language.toml") || !strings.Contains(err.Error(), "none/language.toml") {
		t.Errorf("problems: %v", err)
	}
}

func TestClaims(t *testing.T) {
	r, err := Open(fstest.MapFS{
		"lua/language.toml":  entryText("lua", "l", "x"),
		"ruby/language.toml": entryText("ruby", "l", "x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.All()
	want := Problems{`ruby/language.toml: "l" belongs to lua already`, `ruby/language.toml: ".x" belongs to lua already`}
	if diff := cmp.Diff(want, err); diff != "" {
		t.Error(diff)
	}
}

func TestLaterReplaces(t *testing.T) {
	r, err := Open(
		fstest.MapFS{"lua/language.toml": entryText("lua", "one", "lua"), "ruby/language.toml": entryText("ruby", "rb", "rb")},
		fstest.MapFS{"lua/language.toml": entryText("lua", "two", "lua")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Resolve("lua", nil)
	if err != nil || l.Aliases[0] != "two" {
		t.Errorf("got %v, %v", l, err)
	}
	if diff := cmp.Diff([]string{"lua", "ruby"}, r.Names()); diff != "" {
		t.Error(diff)
	}
}

type counting struct {
	fstest.MapFS
	mu    sync.Mutex
	reads map[string]int
}

func (c *counting) ReadFile(name string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads[name]++
	return c.MapFS.ReadFile(name)
}

func letters(i int) string { return "lang" + string(rune('a'+i)) }

// Opening reads nothing, asking by name reads one file, and nobody reads twice.
func TestLazyHammer(t *testing.T) {
	fsys := &counting{MapFS: fstest.MapFS{}, reads: map[string]int{}}
	for i := range 20 {
		n := letters(i)
		fsys.MapFS[n+"/language.toml"] = entryText(n, fmt.Sprintf("alias%d", i), fmt.Sprintf("e%d", i))
	}
	var _ fs.ReadFileFS = fsys
	r, err := Open(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(letters(3), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{letters(3) + "/language.toml": 1}, fsys.reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if l, err := r.Resolve(fmt.Sprintf("alias%d", i), nil); err != nil || l.Name != letters(i) {
				t.Errorf("alias%d: %v, %v", i, l, err)
			}
			if l := r.ByExtension(fmt.Sprintf("a.e%d", i)); l == nil {
				t.Errorf("no language for .e%d", i)
			}
		})
	}
	wg.Wait()
	for name, n := range fsys.reads {
		if n != 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[string]Size{"0": 0, "17": 17, "512MiB": 512 << 20, "512 mib": 512 << 20, "1GB": 1e9, "64k": 64 << 10, "3B": 3, "1TiB": 1 << 40} {
		got, err := ParseSize(in)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
		text, err := got.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again Size
		if err := again.UnmarshalText(text); err != nil || again != got {
			t.Errorf("%q is read back as %d, %v", text, again, err)
		}
	}
	for _, in := range []string{"", "-1", "1.5GiB", "MiB", "9999999999TiB", "12 parsecs", "NaN", "1e3"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d", in, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(string(entryText("lua", "l", "lua").Data))
	f.Add("name = 3")
	f.Add("[toolchain]\nversion_pattern = '((('")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := decode(fstest.MapFS{"lua/language.toml": {Data: []byte(text)}}, "lua")
		if (l == nil) == (err == nil) {
			t.Fatalf("got %v and %v", l, err)
		}
		if err != nil {
			var p Problems
			if !errors.As(err, &p) || len(p) == 0 {
				t.Fatalf("%v is no Problems", err)
			}
			return
		}
		if l.Name != "lua" || len(l.Argv("x", "y", nil)) == 0 {
			t.Fatalf("an empty entry passed: %+v", l)
		}
	})
}

func FuzzShebang(f *testing.F) {
	f.Add("#!/usr/bin/env -S python3 -u\n")
	f.Add("#! \t\n")
	f.Fuzz(func(t *testing.T, source string) {
		if got := shebang(source); strings.ContainsAny(got, " \t\n") || strings.Contains(strings.Trim(got, "/"), "/") {
			t.Fatalf("shebang(%q) = %q", source, got)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	for b.Loop() {
		r, err := Open(languages.FS)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = r.Resolve("python", nil)
	}
}
