package config

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// tree is a TOML document as tables within tables.
type tree map[string]any

func (t tree) get(path ...string) (any, bool) {
	var at any = map[string]any(t)
	for _, name := range path {
		table, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = table[name]; !ok {
			return nil, false
		}
	}
	return at, true
}

// put sets a value and makes the tables above it.
func (t tree) put(value any, path ...string) {
	table := map[string]any(t)
	for _, name := range path[:len(path)-1] {
		next, ok := table[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			table[name] = next
		}
		table = next
	}
	table[path[len(path)-1]] = value
}

// merge lays over onto t: tables are joined, everything else is replaced.
func (t tree) merge(over tree) {
	for name, value := range over {
		below, isTable := t[name].(map[string]any)
		above, ok := value.(map[string]any)
		if isTable && ok {
			tree(below).merge(above)
			continue
		}
		t[name] = value
	}
}

// leaves visits every value that is no table, in order of the keys.
func (t tree) leaves(visit func(key string, value any)) { walk(t, nil, visit) }

func walk(t tree, path []string, visit func(string, any)) {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		here := append(path[:len(path):len(path)], name)
		if table, ok := t[name].(map[string]any); ok {
			walk(table, here, visit)
			continue
		}
		visit(toml.Key(here).String(), t[name])
	}
}

// unknownKey says that the struct has no such key.
type unknownKey string

func (k unknownKey) Error() string { return "unknown key " + string(k) }

// decode fills a struct from a tree, strictly. The way leads over TOML text, so
// that the library's rules for types hold for every layer alike.
func decode(t tree, into any) error {
	if len(t) == 0 {
		return nil
	}
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(map[string]any(t)); err != nil {
		return err
	}
	meta, err := toml.NewDecoder(&text).Decode(into)
	if err != nil {
		return err
	}
	if left := meta.Undecoded(); len(left) > 0 {
		return unknownKey(left[0].String())
	}
	return nil
}

func decodes[T any](t tree) error {
	var scratch T
	return decode(t, &scratch)
}

// wrongValue takes from the library's words what means something to the author
// of a file.
func wrongValue(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "incompatible types: TOML value has type "); ok {
		got, want, _ := strings.Cut(after, "; destination has type ")
		return "must be " + typeName(want) + ", not " + typeName(got)
	}
	if _, found, ok := strings.Cut(text, ": expected table but found "); ok {
		return "must be a table, not " + typeName(found)
	}
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		return pe.Message
	}
	if _, after, ok := strings.Cut(text, "\"): "); ok && strings.HasPrefix(text, "toml: line ") {
		return after
	}
	return strings.TrimPrefix(text, "toml: ")
}

func typeName(s string) string {
	switch strings.TrimSpace(s) {
	case "string":
		return "a text"
	case "int64", "integer", "int":
		return "a whole number"
	case "bool", "boolean":
		return "true or false"
	case "float64", "float":
		return "a number"
	case "slice", "array", "[]interface {}", "[]any":
		return "a list"
	case "map", "map[string]interface {}", "map[string]any", "table":
		return "a table"
	}
	return s
}

// patterns are only made for a file that exists: this package is in every start
// of the command.
type patterns struct {
	header *regexp.Regexp // the line of a table
	entry  *regexp.Regexp // the beginning of a key's line
	piece  *regexp.Regexp // one name of a dotted key
}

var lineForms = sync.OnceValue(func() patterns {
	const name = `(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')`
	return patterns{
		header: regexp.MustCompile(`^\s*\[{1,2}([^\]\[]+)\]{1,2}\s*(#.*)?$`),
		entry:  regexp.MustCompile(`^\s*(` + name + `(?:\s*\.\s*` + name + `)*)\s*=`),
		piece:  regexp.MustCompile(name),
	}
})

// keyLines finds the line on which each key stands first. The library does not
// tell. It is only for messages: a line in a text of several lines may pass for
// a key.
func keyLines(text []byte) map[string]int {
	lines := map[string]int{}
	note := func(path []string, n int) {
		for i := range path {
			if key := toml.Key(path[:i+1]).String(); lines[key] == 0 {
				lines[key] = n
			}
		}
	}
	var table []string
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if m := lineForms().header.FindSubmatch(line); m != nil {
			table = split(m[1])
			note(table, n)
		} else if m := lineForms().entry.FindSubmatch(line); m != nil {
			note(append(table[:len(table):len(table)], split(m[1])...), n)
		}
	}
	return lines
}

func split(dotted []byte) []string {
	var parts []string
	for _, p := range lineForms().piece.FindAll(dotted, -1) {
		s := string(p)
		switch s[0] {
		case '"':
			if u, err := strconv.Unquote(s); err == nil {
				s = u
			}
		case '\'':
			s = s[1 : len(s)-1]
		}
		parts = append(parts, s)
	}
	return parts
}

// keysOf lists the keys of a struct by its toml tags; a free name in a table
// is written <name>.
func keysOf[T any]() []string {
	var keys []string
	collect(reflect.TypeFor[T](), "", &keys)
	sort.Strings(keys)
	return keys
}

func collect(t reflect.Type, prefix string, keys *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()) {
			break
		}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			if f.Anonymous && name == "" {
				collect(f.Type, prefix, keys)
				continue
			}
			if name == "" {
				name = f.Name
			}
			collect(f.Type, prefix+name+".", keys)
		}
		return
	case reflect.Map:
		collect(t.Elem(), prefix+"<name>.", keys)
		return
	}
	*keys = append(*keys, strings.TrimSuffix(prefix, "."))
}
