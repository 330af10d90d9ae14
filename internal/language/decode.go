package language

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// fileName is the file in each language's folder.
const fileName = "language.toml"

// assetRoot is where a sandbox shows read-only files of ours.
const assetRoot = "/opt/belljar/"

// Problems are all the things that are wrong with language files, each with its
// file and key.
type Problems []string

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0]
	}
	return fmt.Sprintf("%d problems in language files:\n%s", len(p), strings.Join(p, "\n"))
}

// decode reads and checks the entry in folder. Its error is Problems.
func decode(fsys fs.FS, folder string) (*Language, error) {
	file := path.Join(folder, fileName)
	bad := func(err error) error { return Problems{file + ": " + err.Error()} }
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, bad(err)
	}
	l := new(Language)
	meta, err := toml.Decode(string(text), l)
	if err != nil {
		if pe, ok := errors.AsType[toml.ParseError](err); ok {
			return nil, Problems{fmt.Sprintf("%s:%d: %s: %s", file, pe.Position.Line, pe.LastKey, pe.Message)}
		}
		return nil, bad(err)
	}
	if l.folder, err = fs.Sub(fsys, folder); err != nil {
		return nil, bad(err)
	}
	c := check{file: file, l: l}
	for _, key := range meta.Undecoded() {
		c.bad(key.String(), "unknown key")
	}
	c.all(folder)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return l, nil
}

// check collects what is wrong with one entry.
type check struct {
	file     string
	l        *Language
	problems Problems
}

func (c *check) bad(key, form string, args ...any) {
	c.problems = append(c.problems, c.file+": "+key+": "+fmt.Sprintf(form, args...))
}

func (c *check) all(folder string) {
	l := c.l
	if l.Name != folder {
		c.bad("name", "is %q but the folder is %q", l.Name, folder)
	}
	if !isWord(l.Name) {
		c.bad("name", "%q is not made of a-z, 0-9, +, # and -", l.Name)
	}
	for _, a := range l.Aliases {
		if !isWord(a) {
			c.bad("aliases", "%q is not made of a-z, 0-9, +, # and -", a)
		}
	}
	if l.Summary == "" || strings.ContainsAny(l.Summary, "\n\r") {
		c.bad("summary", "must be one line of text")
	}
	for _, e := range l.Extensions {
		if len(e) < 2 || e[0] != '.' || strings.ContainsAny(e, "/ ") || strings.ToLower(e) != e {
			c.bad("extensions", "%q must be a dot and lower-case letters", e)
		}
	}
	for _, s := range l.Shebang {
		if s == "" || strings.ContainsAny(s, "/ \t") || strings.TrimRight(s, "0123456789.") != s {
			c.bad("shebang", "%q must be the name of a program without its version", s)
		}
	}
	if l.File == "" || strings.ContainsAny(l.File, "/\\\x00") || strings.HasPrefix(l.File, ".") || strings.HasPrefix(l.File, "-") {
		c.bad("file", "%q must be the name of a file", l.File)
	}
	c.toolchain()
	c.run()
	c.script()
	if l.Limits.RuntimeProcesses < 0 {
		c.bad("limits.runtime_processes", "is negative")
	}
	if l.Limits.OpenFiles < 0 {
		c.bad("limits.open_files", "is negative")
	}
	if l.Install["default"] == "" {
		c.bad("install.default", "is missing: somebody's system is not in the list")
	}
}

func (c *check) toolchain() {
	t := c.l.Toolchain
	if len(t.Candidates) == 0 {
		c.bad("toolchain.candidates", "is empty")
	}
	for _, name := range t.Candidates {
		if name == "" || strings.Contains(name, "/") && !path.IsAbs(name) {
			c.bad("toolchain.candidates", "%q is neither an absolute path nor a name", name)
		}
	}
	if (len(t.Probe) == 0) != (t.ProbeFile == "") {
		c.bad("toolchain.probe", "and probe_file belong together")
	}
	c.fileExists("toolchain.probe_file", t.ProbeFile)
	if (len(t.Version) == 0) != (t.VersionPattern == "") {
		c.bad("toolchain.version", "and version_pattern belong together")
	}
	if len(t.Probe) == 0 && len(t.Version) == 0 {
		c.bad("toolchain.version", "is missing, and there is no probe")
	}
	if t.VersionPattern != "" {
		re, err := regexp.Compile(t.VersionPattern)
		switch {
		case err != nil:
			c.bad("toolchain.version_pattern", "%v", err)
		case re.NumSubexp() != 1:
			c.bad("toolchain.version_pattern", "has %d groups; the version must be the only one", re.NumSubexp())
		default:
			c.l.pattern = re
		}
	}
	if t.Minimum != "" && strings.Trim(t.Minimum, "0123456789.") != "" {
		c.bad("toolchain.minimum", "%q is no version", t.Minimum)
	}
}

func (c *check) run() {
	r := c.l.Run
	if len(r.Argv) == 0 || r.Argv[0] != "{interpreter}" {
		c.bad("run.argv", "must begin with {interpreter}")
	}
	source := false
	for _, a := range r.Argv {
		source = source || strings.Contains(a, "{file}")
	}
	if !source {
		c.bad("run.argv", "does not name {file}")
	}
	c.env("run.env", r.Env)
}

func (c *check) script() {
	s := c.l.Script
	if s.Folder == "" {
		if len(s.Assets) > 0 || len(s.Env) > 0 {
			c.bad("script.folder", "is missing")
		}
		return
	}
	if !strings.HasPrefix(s.Folder, assetRoot) || path.Clean(s.Folder) != s.Folder {
		c.bad("script.folder", "%q is not beneath %s", s.Folder, assetRoot)
	}
	if len(s.Assets) == 0 {
		c.bad("script.assets", "is empty")
	}
	for _, a := range s.Assets {
		c.fileExists("script.assets", a)
	}
	c.env("script.env", s.Env)
}

func (c *check) fileExists(key, name string) {
	if name == "" {
		return
	}
	if info, err := fs.Stat(c.l.folder, name); err != nil || !info.Mode().IsRegular() {
		c.bad(key, "there is no file %q in the language's folder", name)
	}
}

func (c *check) env(key string, env map[string]string) {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			c.bad(key, "%q cannot be set", name)
		}
	}
}

// isWord tells whether s can be a name of a language: c++ and objective-c are two.
func isWord(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9':
		case (b == '+' || b == '-' || b == '#') && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
