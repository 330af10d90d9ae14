package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// FileName is the name of a configuration file in its folder.
const FileName = "belljar.toml"

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// Options say where to look.
type Options struct {
	System string   // folder of the machine's file; "" for /etc/belljar
	Dir    string   // working directory; "" for the process's own
	Env    []string // as of os.Environ
	File   string   // of --config; "" for none
	// Flags are values by key ("workspace.path") that win over everything.
	Flags map[string]any
}

// Loaded is what came of the layers.
type Loaded[T any] struct {
	Config T
	Files  []string // that were read, in order
	Notes  []string // what was ignored and why, one sentence each
	origin map[string]string
}

// Origin tells where a key was set: "FILE:LINE", the name of a variable, "flag",
// or "default".
func (l *Loaded[T]) Origin(key string) string {
	if at, ok := l.origin[key]; ok {
		return at
	}
	return "default"
}

// Locate puts in front of each key that a text names, as in "policy.deny: ...",
// where it was set: parts know their keys, not the files.
func (l *Loaded[T]) Locate(text string) string {
	for key, at := range l.origin {
		for from := 0; ; {
			i := strings.Index(text[from:], key+":")
			if i < 0 {
				break
			}
			i += from
			// Not the end of a longer key, nor one that has its place already.
			if i == 0 || strings.ContainsRune(" (;\n", rune(text[i-1])) && !strings.HasSuffix(text[:i], at+": ") {
				text = text[:i] + at + ": " + text[i:]
				i += len(at) + 2
			}
			from = i + len(key)
		}
	}
	return text
}

// Problems are all the things that are wrong with the configuration.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Load reads the layers into a T, whose zero value holds the defaults. What is
// wrong with a file comes as [Problems]; a file that is there and cannot be read
// is an error too.
func Load[T any](opt Options) (*Loaded[T], error) {
	if opt.System == "" {
		opt.System = "/etc/belljar"
	}
	env := environ(opt.Env)
	if opt.File == "" {
		opt.File = env["BELLJAR_CONFIG"]
	}
	l := &loader{check: decodes[T], keys: keysOf[T], tree: tree{}, origin: map[string]string{}}

	l.file(filepath.Join(opt.System, FileName), false)
	if dir := userFolder(env); dir != "" {
		l.file(filepath.Join(dir, "belljar", FileName), false)
	}
	if opt.File != "" {
		l.file(opt.File, true)
	}
	if local := filepath.Join(opt.Dir, FileName); !l.has(local) {
		l.narrow(local)
	}
	l.environment(env)
	for key, value := range opt.Flags {
		l.set(key, value, "flag")
	}
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	out := &Loaded[T]{Files: l.files, Notes: l.notes, origin: l.origin}
	if err := decode(l.tree, &out.Config); err != nil {
		return nil, Problems{err.Error()} // a flag's value: the files and variables were checked
	}
	return out, nil
}

// loader lays one layer over the next.
type loader struct {
	check    func(tree) error // whether a tree fits the struct
	keys     func() []string  // all known keys, for suggestions
	tree     tree
	origin   map[string]string
	files    []string
	notes    []string
	problems Problems
}

// file lays a file over the tree; one that is not there is only missed if it was
// named.
func (l *loader) file(path string, named bool) {
	t, at, ok := l.read(path, named)
	if !ok {
		return
	}
	l.files = append(l.files, path)
	t.leaves(func(key string, value any) { l.origin[key] = at(key) })
	l.tree.merge(t)
}

// read parses a file and checks it by itself, so that each problem has its line.
func (l *loader) read(path string, named bool) (t tree, at func(key string) string, ok bool) {
	text, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil, nil, false
	case err != nil:
		l.problems = append(l.problems, fmt.Sprintf("%s: cannot be read: %v", path, plain(err)))
		return nil, nil, false
	}
	meta, err := toml.Decode(string(text), &t)
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		l.problems = append(l.problems, fmt.Sprintf("%s:%d: %s", path, pe.Position.Line, pe.Message))
		return nil, nil, false
	}
	if err != nil {
		l.problems = append(l.problems, fmt.Sprintf("%s: %v", path, err))
		return nil, nil, false
	}
	if t == nil {
		t = tree{}
	}
	lines := keyLines(text)
	at = func(key string) string {
		if n := lines[key]; n > 0 {
			return fmt.Sprintf("%s:%d", path, n)
		}
		return path
	}
	before := len(l.problems)
	if l.check(t) != nil {
		l.explain(t, meta.Keys(), at)
	}
	return t, at, len(l.problems) == before
}

// explain finds every problem of a tree that as a whole does not fit.
func (l *loader) explain(t tree, keys []toml.Key, at func(string) string) {
	found := len(l.problems)
	var named []string
	for _, key := range keys {
		name := key.String()
		if under(name, named) {
			continue // its table is wrong already
		}
		value, _ := t.get(key...)
		alone := tree{}
		if _, ok := value.(map[string]any); ok {
			value = map[string]any{}
		}
		alone.put(value, key...)
		err := l.check(alone)
		if err == nil {
			continue
		}
		named = append(named, name)
		if _, ok := errors.AsType[unknownKey](err); ok {
			text := fmt.Sprintf("%s: unknown key %s", at(name), name)
			if near := Nearest(name, l.keys()); len(near) > 0 {
				text += "; did you mean " + near[0] + "?"
			}
			l.problems = append(l.problems, text)
			continue
		}
		l.problems = append(l.problems, fmt.Sprintf("%s: %s: %s", at(name), name, wrongValue(err)))
	}
	if len(l.problems) == found { // only together it does not fit
		l.problems = append(l.problems, fmt.Sprintf("%s: %v", at(""), l.check(t)))
	}
}

func under(name string, tables []string) bool {
	for _, t := range tables {
		if strings.HasPrefix(name, t+".") {
			return true
		}
	}
	return false
}

// set lays one value over the tree.
func (l *loader) set(key string, value any, from string) {
	l.tree.put(value, strings.Split(key, ".")...)
	l.origin[key] = from
}

func (l *loader) has(path string) bool {
	for _, f := range l.files {
		if sameFile(f, path) {
			return true
		}
	}
	return false
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	text, err := os.ReadFile(path)
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// plain takes the path out of a path error: the message has it already.
func plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
