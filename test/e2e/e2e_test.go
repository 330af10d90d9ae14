// Package e2e runs the whole command, as a shell would: each file of testdata is a
// script that calls belljar and looks at its streams and exit codes.
//
//	testdata/plain   what needs no sandbox
//	testdata/run     what runs programs; played as root and as an ordinary user
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/belljar/belljar/internal/cli"
	"github.com/belljar/belljar/internal/testkit"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"belljar": func() { os.Exit(cli.Main()) }})
}

func TestPlain(t *testing.T) { play(t, "plain") }

func TestRun(t *testing.T) {
	testkit.Need(t, "userns", "python")
	play(t, "run")
}

func TestRunAsUser(t *testing.T) {
	if !testkit.AsUser(t, testkit.PlainUID) {
		return
	}
	testkit.Need(t, "userns", "python")
	play(t, "run")
}

func play(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", dir),
		Setup:               setup,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                map[string]func(ts *testscript.TestScript, neg bool, args []string){"code": code},
	})
}

// setup gives each script a home of its own, and $REPO for the examples.
func setup(env *testscript.Env) error {
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	env.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	env.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	env.Setenv("REPO", repo)
	return os.MkdirAll(home, 0o700)
}

// code runs a command and wants this exit code: code 124 belljar run loop.py.
// The streams are there for stdout and stderr as after exec.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [arg...]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("code: %v", err)
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("code: %v", err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// readme is the file whose commands are promised to work.
const readme = "../../README.md"

// TestReadme runs the blocks of the README that are marked ```sh run, each as one
// script in a copy of nothing: the working directory is the repository, `belljar`
// and `go run ./cmd/belljar` are this tree's command.
func TestReadme(t *testing.T) {
	testkit.Need(t, "userns", "python")
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	// A home of its own for the commands, but not for the compiler: what it has
	// built and fetched stays where it is.
	var caches []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		dir, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		caches = append(caches, name+"="+strings.TrimSpace(string(dir)))
	}
	blocks := marked(string(text))
	if len(blocks) == 0 {
		t.Fatalf("%s has no block that begins with ```sh run", readme)
	}
	for _, b := range blocks {
		t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
			home := t.TempDir()
			script := strings.ReplaceAll(b.text, "go run ./cmd/belljar", "belljar")
			cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
			cmd.Dir = filepath.Dir(readme)
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "BELLJAR_STATE_DIR=")
			cmd.Env = append(cmd.Env, caches...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, script, out)
			}
		})
	}
}

type block struct {
	line int
	text string
}

// marked finds the fenced blocks whose info string is "sh run".
func marked(text string) []block {
	var found []block
	var open *block
	n := 0
	for line := range strings.Lines(text) {
		n++
		bare := strings.TrimSpace(line)
		switch {
		case open == nil && bare == "```sh run":
			open = &block{line: n}
		case open != nil && bare == "```":
			found = append(found, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return found
}

func TestMarked(t *testing.T) {
	text := "a\n```sh\nno\n```\n```sh run\nbelljar version\nbelljar doctor\n```\n```sh run\nx\n"
	got := marked(text)
	if len(got) != 1 || got[0].line != 5 || got[0].text != "belljar version\nbelljar doctor\n" {
		t.Errorf("%+v", got)
	}
}
