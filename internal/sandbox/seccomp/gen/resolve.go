//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// target is an architecture to generate a table for.
type target struct {
	goArch string
	table  string // name of the Go variable
	file   string
	info   *arch.Info
}

// The files' names must not end in an architecture: each build needs all.
var targets = []target{
	{"amd64", "callsAMD64", "zcallsx86.go", arch.X86_64},
	{"arm64", "callsARM64", "zcallsarm.go", arch.AARCH64},
}

// line is one decided call.
type line struct {
	nr   int
	name string
	rule string
}

// resolve decides every call of t's number table.
func resolve(t target) ([]line, error) {
	allowed, err := mobyAllows(t.goArch)
	if err != nil {
		return nil, err
	}
	var lines []line
	for name, nr := range t.info.SyscallNames {
		if notACall[name] || nr >= firstTime64 && nr <= lastTime64 {
			continue
		}
		if r, ok := renamed[name]; ok {
			name = r
		}
		lines = append(lines, line{nr, name, ruleFor(name, allowed[name])})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.nr, b.nr) })
	for i := 1; i < len(lines); i++ {
		if lines[i].nr == lines[i-1].nr {
			return nil, fmt.Errorf("%s: %s and %s have one number, %d", t.goArch, lines[i-1].name, lines[i].name, lines[i].nr)
		}
	}
	return lines, nil
}

func ruleFor(name string, allowed bool) string {
	switch rule, ok := judged[name]; {
	case ok:
		return rule
	case slices.Contains(refused, name):
		return "ruleRefuse"
	case slices.Contains(done, name):
		return "ruleDone"
	case allowed && !slices.Contains(withheld, name):
		return "ruleAllow"
	}
	return "ruleNoSys"
}

// mobyAllows returns the names that moby's profile allows on a Go architecture
// to a process without capabilities on a current kernel. An entry with
// arguments, or an answer other than allow, must be one that we decide
// ourselves.
func mobyAllows(goArch string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, s := range seccomp.DefaultProfile().Syscalls {
		if !applies(s, goArch) {
			continue
		}
		for _, name := range s.Names {
			if len(s.Args) == 0 && s.Action == specs.ActAllow {
				out[name] = true
				continue
			}
			_, ours := judged[name]
			if !ours && name != "clone3" { // clone3: both say ENOSYS
				return nil, fmt.Errorf("moby's profile has a condition for %s and we have none", name)
			}
		}
	}
	return out, nil
}

func applies(s *seccomp.Syscall, goArch string) bool {
	if in := s.Includes; in != nil {
		if len(in.Caps) > 0 || len(in.Arches) > 0 && !slices.Contains(in.Arches, goArch) {
			return false
		}
	}
	if ex := s.Excludes; ex != nil && slices.Contains(ex.Arches, goArch) {
		return false
	}
	return true
}

// checkNames finds slips in policy.go: a name in two lists, or unknown to every
// architecture.
func checkNames() error {
	known := map[string]bool{}
	for _, t := range targets {
		for name := range t.info.SyscallNames {
			known[name] = true
		}
	}
	seen := map[string]bool{}
	check := func(name string) error {
		if !known[name] {
			return fmt.Errorf("policy names %s, which no architecture has", name)
		}
		if seen[name] {
			return fmt.Errorf("policy names %s twice", name)
		}
		seen[name] = true
		return nil
	}
	for _, list := range [][]string{refused, withheld, done} {
		for _, name := range list {
			if err := check(name); err != nil {
				return err
			}
		}
	}
	for name := range judged {
		if err := check(name); err != nil {
			return err
		}
	}
	for name := range renamed {
		if !known[name] {
			return fmt.Errorf("policy renames %s, which no architecture has", name)
		}
	}
	return nil
}
