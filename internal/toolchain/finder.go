package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
)

// Config chooses toolchains: [languages.<name>]. The zero value looks for them.
type Config map[string]Choice

// Choice is what the operator says about one language.
type Choice struct {
	// Interpreter is the absolute path of the program to use, a virtual
	// environment's python for instance: its packages become visible, read-only.
	Interpreter string `toml:"interpreter"`
}

// Toolchain is what runs a language here.
type Toolchain struct {
	Lang    string `json:"lang"`
	Version string `json:"version"`
	// Path is the program, absolute, valid in the sandbox as on the host.
	Path string `json:"path"`
	// Folders are the host's folders to bind read-only at the same path, beyond
	// /usr and its links (/bin, /lib).
	Folders []string `json:"folders,omitempty"`
	// Hidden are folders that the interpreter would search for packages but that
	// a run does not see, since they are outside the toolchain.
	Hidden []string `json:"hidden,omitempty"`
}

// Finder finds toolchains. It may be used from several goroutines at once.
type Finder struct {
	cfg   Config
	state string
	host  host

	mu    sync.Mutex
	slots map[string]*slot
}

// slot is one language; its lock makes one goroutine probe while others wait.
type slot struct {
	mu    sync.Mutex
	found *record
}

// New makes a Finder that keeps its answers in the folder state; empty: it keeps
// none.
func New(cfg Config, state string) *Finder {
	return &Finder{cfg: cfg, state: state, host: thisHost(), slots: make(map[string]*slot)}
}

// Problems lists what is wrong with the configuration, given the known languages.
func (c Config) Problems(known []string) []string {
	var out []string
	for name, choice := range c {
		key := "languages." + name
		if !slices.Contains(known, name) {
			out = append(out, fmt.Sprintf("%s: there is no such language; known are %s", key, strings.Join(known, ", ")))
		}
		if p := choice.Interpreter; p != "" && !filepath.IsAbs(p) {
			out = append(out, fmt.Sprintf("%s.interpreter: %q is no absolute path", key, p))
		}
	}
	slices.Sort(out)
	return out
}

// Find gives the toolchain of a language. Its error is a [*belljar.Refusal] with
// code no_toolchain when the machine has none that works.
func (f *Finder) Find(ctx context.Context, l *language.Language) (*Toolchain, error) {
	f.mu.Lock()
	s := f.slots[l.Name]
	if s == nil {
		s = new(slot)
		f.slots[l.Name] = s
	}
	f.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil && s.found.fresh() {
		return &s.found.Toolchain, nil
	}
	rec, err := f.find(ctx, l)
	if err != nil {
		s.found = nil
		return nil, err
	}
	s.found = rec
	return &rec.Toolchain, nil
}

// find goes through the candidates in order: what is no shim first.
func (f *Finder) find(ctx context.Context, l *language.Language) (*record, error) {
	digest, err := entryDigest(l)
	if err != nil {
		return nil, fmt.Errorf("read the probe of %s: %w", l.Name, err)
	}
	c := openCache(f.state, l.Name, digest)
	configured := f.cfg[l.Name].Interpreter
	candidates := f.candidates(l, configured)
	var shims, reasons []string
	for _, path := range candidates {
		if rec := c.get(path); rec != nil && !rec.Shim && f.host.checkFolders(rec.Toolchain.Folders) == nil {
			return rec, nil
		}
		if isShim(path) {
			shims = append(shims, path)
			continue
		}
		rec, err := f.probe(ctx, l, path)
		if err == nil {
			c.put(rec)
			return rec, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		reasons = append(reasons, err.Error())
	}
	for _, shim := range shims {
		if rec := c.get(shim); rec != nil && f.host.checkFolders(rec.Toolchain.Folders) == nil {
			return rec, nil
		}
		rec, err := f.ask(ctx, l, shim)
		if err == nil {
			c.put(rec)
			return rec, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		reasons = append(reasons, err.Error())
	}
	return nil, f.refuse(l, configured, reasons)
}

func (f *Finder) refuse(l *language.Language, configured string, reasons []string) error {
	if configured != "" {
		return belljar.Refuse(belljar.CodeNoToolchain,
			fmt.Sprintf("Correct interpreter under [languages.%s], or remove it to use this machine's own.", l.Name),
			"the configured interpreter of %s does not work: %s.", l.Name, strings.Join(reasons, "; "))
	}
	hint := l.InstallHint(f.host.system())
	if len(reasons) == 0 {
		return belljar.Refuse(belljar.CodeNoToolchain, hint, "no toolchain for %s was found on this machine.", l.Name)
	}
	return belljar.Refuse(belljar.CodeNoToolchain, hint, "no toolchain for %s works on this machine: %s.", l.Name, strings.Join(reasons, "; "))
}

// candidates gives the paths to try that exist, in order of preference.
func (f *Finder) candidates(l *language.Language, configured string) []string {
	if configured != "" {
		return []string{configured} // even if it is missing: that is then the reason
	}
	var out []string
	add := func(path string) {
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, c := range l.Toolchain.Candidates {
		if filepath.IsAbs(c) {
			add(c)
			continue
		}
		for _, dir := range filepath.SplitList(f.host.getenv("PATH")) {
			if filepath.IsAbs(dir) { // never a program of the working directory
				add(filepath.Join(dir, c))
			}
		}
	}
	return out
}

// Runnable lists which of the given languages have a toolchain here.
func (f *Finder) Runnable(ctx context.Context, all []*language.Language) []string {
	var out []string
	for _, l := range all {
		if _, err := f.Find(ctx, l); err == nil {
			out = append(out, l.Name)
		}
	}
	return out
}

// Checks says for each language what runs it.
func (f *Finder) Checks(ctx context.Context, all []*language.Language) []belljar.Check {
	out := make([]belljar.Check, 0, len(all))
	for _, l := range all {
		check := belljar.Check{Name: "language " + l.Name}
		t, err := f.Find(ctx, l)
		switch refusal, refused := errors.AsType[*belljar.Refusal](err); {
		case refused:
			check.State, check.Meaning, check.Remedy = belljar.CheckFail, refusal.Reason, refusal.Hint
		case err != nil:
			check.State, check.Meaning = belljar.CheckFail, err.Error()
		case len(t.Hidden) > 0:
			check.State = belljar.CheckWarn
			check.Meaning = fmt.Sprintf("%s %s; not visible to runs: %s", t.Path, t.Version, strings.Join(t.Hidden, ", "))
			check.Remedy = fmt.Sprintf("Install these packages into the interpreter itself or into a virtual environment, and name its python as interpreter under [languages.%s].", l.Name)
		default:
			check.State, check.Meaning = belljar.CheckOK, t.Path+" "+t.Version
		}
		out = append(out, check)
	}
	return out
}
