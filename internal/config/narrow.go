package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
)

// A rule lays one value of a stranger's file over what is in force. base is nil
// where nothing was configured. It gives the value to put and whether the file
// got all it asked for; a nil value puts nothing.
type rule func(base, asked any) (value any, whole bool)

// narrowing is every key that a belljar.toml in the working directory may set,
// beside policy.tools. What is not here is ignored. Where a rule has a default, it
// is that of the part itself.
var narrowing = []struct {
	key  string
	rule rule
}{
	{"policy.deny", union},
	{"policy.max_calls_per_run", lower(1000)},
	// Not limits.ceiling and limits.language: they go before the limits of a kind,
	// so a value below the default can still widen what was configured there.
	{"limits.script.timeout", shorter("30s")},
	{"limits.snippet.timeout", shorter("5s")},
	{"limits.script.memory", smaller("512MiB")},
	{"limits.snippet.memory", smaller("512MiB")},
	{"limits.script.processes", lower(64)},
	{"limits.snippet.processes", lower(64)},
	{"limits.script.disk", smaller("64MiB")},
	{"limits.snippet.disk", smaller("64MiB")},
	{"limits.script.inodes", lower(10000)},
	{"limits.snippet.inodes", lower(10000)},
	{"limits.script.output_bytes", smaller("16MiB")},
	{"limits.snippet.output_bytes", smaller("16MiB")},
	{"limits.script.output_chars", lower(6000)},
	{"limits.snippet.output_chars", lower(20000)},
	{"limits.script.open_files", lower(1024)},
	{"limits.snippet.open_files", lower(1024)},
	{"sandbox.minimum", higher},
	{"audit.required", demanded},
}

// curated is the set of tools that is offered where policy.tools is not set: what
// a narrower list is measured against. A test compares it with package policy.
var curated = []string{"read_file", "list_dir", "find_files", "search_files", "fetch_url",
	"web_search", "memory_recall", "memory_list", "current_time"}

// narrow lays the file in the working directory over the tree, as far as it is
// narrower.
func (l *loader) narrow(path string) {
	t, at, ok := l.read(path, false)
	if !ok {
		return
	}
	l.files = append(l.files, path)
	var ignored []string
	t.leaves(func(key string, asked any) {
		if key == "policy.tools" {
			if !l.narrowTools(asked, at(key)) {
				ignored = append(ignored, key)
			}
			return
		}
		keep := ruleFor(key)
		if keep == nil {
			ignored = append(ignored, key)
			return
		}
		parts := strings.Split(key, ".") // no key with a rule has a dot in a name
		base, _ := l.tree.get(parts...)
		value, whole := keep(base, asked)
		if !whole {
			ignored = append(ignored, key)
		}
		if value != nil {
			l.set(key, value, at(key))
		}
	})
	if len(ignored) > 0 {
		l.notes = append(l.notes, fmt.Sprintf("%s lies in the working directory and may only narrow; ignored: %s. To use all of it: --config %s.",
			path, strings.Join(ignored, ", "), path))
	}
}

func ruleFor(key string) rule {
	for _, n := range narrowing {
		if n.key == key {
			return n.rule
		}
	}
	return nil
}

// narrowTools keeps, of the tools in force, those that the file names too.
func (l *loader) narrowTools(asked any, from string) (whole bool) {
	wanted := texts(asked)
	if len(wanted) == 0 {
		return true // an empty list stands for the default
	}
	inForce := curated
	if v, ok := l.tree.get("policy", "tools"); ok && len(texts(v)) > 0 {
		inForce = texts(v)
	}
	if v, ok := l.tree.get("policy", "extra_tools"); ok {
		inForce = slices.Concat(inForce, texts(v))
	}
	var both []any
	whole = true
	for _, name := range wanted {
		if slices.ContainsFunc(inForce, func(f string) bool { return sameName(f, name) }) {
			both = append(both, name)
		} else {
			whole = false
		}
	}
	if len(both) == 0 { // an empty list would mean the default set
		base, _ := l.tree.get("policy", "deny")
		all, _ := union(base, []any{"*"})
		l.set("policy.deny", all, from)
		return whole
	}
	l.set("policy.tools", both, from)
	l.set("policy.extra_tools", []any{}, from)
	return whole
}

// sameName compares tool names as policy does: '-', '.' and spaces are '_'.
func sameName(a, b string) bool {
	fold := strings.NewReplacer("-", "_", ".", "_", " ", "_")
	return fold.Replace(a) == fold.Replace(b)
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func union(base, asked any) (any, bool) {
	out, _ := base.([]any)
	out = slices.Clone(out)
	for _, name := range texts(asked) {
		if !slices.Contains(texts(out), name) {
			out = append(out, name)
		}
	}
	return out, true
}

// lower takes a number that is not above the one in force. Zero stands for the
// default in every part's struct, so it narrows nothing.
func lower(byDefault int64) rule {
	return func(base, asked any) (any, bool) {
		have, ok := base.(int64)
		if !ok || have == 0 {
			have = byDefault
		}
		want, ok := asked.(int64)
		if !ok || want <= 0 || want > have {
			return nil, ok && want == 0
		}
		return want, true
	}
}

func shorter(byDefault string) rule {
	return measured(byDefault, func(s string) (int64, error) {
		d, err := time.ParseDuration(s)
		return int64(d), err
	})
}

func smaller(byDefault string) rule {
	return measured(byDefault, func(s string) (int64, error) {
		n, err := language.ParseSize(s)
		return int64(n), err
	})
}

// measured is lower for values with a unit.
func measured(byDefault string, parse func(string) (int64, error)) rule {
	read := func(v any) (int64, bool) {
		s, ok := v.(string)
		if !ok {
			n, isNumber := v.(int64)
			s, ok = strconv.FormatInt(n, 10), isNumber
		}
		n, err := parse(s)
		return n, ok && err == nil
	}
	return func(base, asked any) (any, bool) {
		have, ok := read(base)
		if !ok || have == 0 {
			have, _ = read(byDefault)
		}
		want, ok := read(asked)
		if !ok || want <= 0 || want > have {
			return nil, false
		}
		return asked, true
	}
}

func higher(base, asked any) (any, bool) {
	have := belljar.LevelNamespaces
	if s, ok := base.(string); ok && s != "" {
		have = belljar.Level(s)
	}
	want, _ := asked.(string)
	if belljar.Level(want).Rank() < have.Rank() {
		return nil, false
	}
	return want, true
}

func demanded(_, asked any) (any, bool) {
	if asked == true {
		return true, true
	}
	return nil, false
}
