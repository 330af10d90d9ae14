package language

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

// Registry holds the languages of one or more folders. It may be used from several
// goroutines at once.
type Registry struct {
	names   []string // sorted
	entries map[string]*entry
}

// entry is decoded at most once, when it is first asked for.
type entry struct {
	once sync.Once
	fsys fs.FS
	lang *Language
	err  error
}

func (e *entry) get(name string) (*Language, error) {
	e.once.Do(func() { e.lang, e.err = decode(e.fsys, name) })
	return e.lang, e.err
}

// Open lists the folders of the given file systems without reading them. A later
// file system replaces a language of the same name.
func Open(systems ...fs.FS) (*Registry, error) {
	r := &Registry{entries: make(map[string]*entry)}
	for _, fsys := range systems {
		list, err := fs.ReadDir(fsys, ".")
		if err != nil {
			return nil, fmt.Errorf("list languages: %w", err)
		}
		for _, d := range list {
			if d.IsDir() {
				r.entries[d.Name()] = &entry{fsys: fsys}
			}
		}
	}
	for name := range r.entries {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r, nil
}

// Names lists the languages, sorted.
func (r *Registry) Names() []string { return slices.Clone(r.names) }

// All gives every language, sorted by name. Its error is Problems of all of them:
// what is wrong in one file, and names that two languages claim.
func (r *Registry) All() ([]*Language, error) {
	var all []*Language
	var problems Problems
	claims := make(map[string]string)
	for _, name := range r.names {
		l, err := r.entries[name].get(name)
		if err != nil {
			problems = append(problems, err.(Problems)...)
			continue
		}
		all = append(all, l)
		for _, claim := range slices.Concat([]string{l.Name}, l.Aliases, l.Extensions) {
			if other, taken := claims[claim]; taken && other != l.Name {
				problems = append(problems, fmt.Sprintf("%s: %q belongs to %s already", path.Join(name, fileName), claim, other))
			}
			claims[claim] = l.Name
		}
	}
	if len(problems) > 0 {
		return all, problems
	}
	return all, nil
}

// Resolve finds a language by name or alias, upper or lower case. When there is
// none it refuses, naming the nearest one and those that runnable lists; runnable
// is only called then and may be nil.
func (r *Registry) Resolve(name string, runnable func() []string) (*Language, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	if e, ok := r.entries[want]; ok {
		return e.get(want)
	}
	// A broken neighbour must not keep a good language from being found.
	all, _ := r.All()
	for _, l := range all {
		if slices.Contains(l.Aliases, want) {
			return l, nil
		}
	}
	return nil, r.unknown(name, want, all, runnable)
}

func (r *Registry) unknown(name, want string, all []*Language, runnable func() []string) error {
	var hint []string
	if near := nearest(want, all); near != "" {
		hint = append(hint, fmt.Sprintf("Did you mean '%s'?", near))
	}
	list := r.names
	if runnable != nil {
		list = runnable()
	}
	if len(list) == 0 {
		hint = append(hint, "No language can run on this machine.")
	} else {
		hint = append(hint, "Languages that run here: "+strings.Join(list, ", ")+".")
	}
	return belljar.Refuse(belljar.CodeUnknownLanguage, strings.Join(hint, " "), "cannot run '%s': there is no such language.", shown(name))
}

// shown makes a name from a stranger fit for a sentence.
func shown(name string) string {
	const most = 40
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if utf8.RuneCountInString(name) > most {
		name = string([]rune(name)[:most]) + "…"
	}
	return name
}

// nearest finds the name that want was perhaps meant to be; "" when none is near.
func nearest(want string, all []*Language) string {
	if len(want) > 40 {
		return ""
	}
	best, least := "", 3 // further than two edits is another word
	for _, l := range all {
		for _, n := range slices.Concat([]string{l.Name}, l.Aliases) {
			if d := distance(want, n); d < least && d < max(len(want), len(n)) {
				best, least = l.Name, d
			}
		}
	}
	return best
}

// distance is the Levenshtein distance of two short strings.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// ByExtension finds the language of a file name, nil when none claims it.
func (r *Registry) ByExtension(file string) *Language {
	ext := strings.ToLower(path.Ext(file))
	if ext == "" {
		return nil
	}
	return r.find(func(l *Language) bool { return slices.Contains(l.Extensions, ext) })
}

// ByShebang finds the language of a source by its #! line, nil when it has none or
// no language claims it.
func (r *Registry) ByShebang(source string) *Language {
	program := shebang(source)
	if program == "" {
		return nil
	}
	bare := strings.TrimRight(program, "0123456789.")
	return r.find(func(l *Language) bool {
		return slices.Contains(l.Shebang, program) || slices.Contains(l.Shebang, bare)
	})
}

func (r *Registry) find(is func(*Language) bool) *Language {
	all, _ := r.All() // a broken file claims nothing
	for _, l := range all {
		if is(l) {
			return l
		}
	}
	return nil
}

// shebang gives the name of the program that a #! line asks for, seeing through env.
func shebang(source string) string {
	line, ok := strings.CutPrefix(source, "#!")
	if !ok {
		return ""
	}
	line, _, _ = strings.Cut(line, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return ""
	}
	if path.Base(fields[0]) != "env" {
		return path.Base(fields[0])
	}
	for _, f := range fields[1:] {
		if !strings.HasPrefix(f, "-") && !strings.Contains(f, "=") {
			return path.Base(f)
		}
	}
	return ""
}
