package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/belljar/belljar"
)

// commandLine plays through `belljar run --json`, a process of its own each time.
type commandLine struct{ b *bench }

func (s commandLine) run(ctx context.Context, p *program) (*reply, error) {
	cmd, clean, err := s.b.commandFor(ctx, p, "--json")
	if err != nil {
		return nil, err
	}
	defer clean()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	code, err := exitOf(cmd.Run())
	if err != nil {
		return nil, err
	}
	r := &reply{took: time.Since(begin), texts: []string{stdout.String(), stderr.String()}}
	if r.res, err = oneResult(stdout.Bytes()); err != nil {
		return nil, fmt.Errorf("%w\nstdout: %.2000s\nstderr: %s", err, stdout.String(), stderr.String())
	}
	if want := exitFor(r.res); code != want {
		return nil, fmt.Errorf("the command's exit code is %d, not %d, for %s", code, want, r.res.Status)
	}
	return r, nil
}

// commandFor prepares `belljar run` for a program. What it needs is away after clean.
func (b *bench) commandFor(ctx context.Context, p *program, flags ...string) (*exec.Cmd, func(), error) {
	dir, err := os.MkdirTemp(b.work, "play-")
	if err != nil {
		return nil, nil, err
	}
	clean := func() { os.RemoveAll(dir) }
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	args := append([]string{"run", "--snippet", "--lang", "python", "--env", markName + "=" + p.nonce}, flags...)
	if p.stdin != "" {
		args = append(args, "--stdin", put("stdin", p.stdin))
	}
	for i, f := range p.files {
		args = append(args, "--file", put("file"+strconv.Itoa(i), f.Content)+":"+f.Name)
	}
	for flag, value := range map[string]*int64{"--memory": p.limits.MemoryBytes, "--disk": p.limits.DiskBytes, "--output": p.limits.OutputBytes, "--processes": p.limits.Processes} {
		if value != nil {
			args = append(args, flag, strconv.FormatInt(*value, 10))
		}
	}
	if p.limits.TimeoutMS != nil {
		args = append(args, "--timeout", strconv.FormatInt(*p.limits.TimeoutMS, 10)+"ms")
	}
	args = append(args, put("main.py", p.source))
	if err != nil {
		clean()
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Dir, cmd.Env = dir, b.environ()
	return cmd, clean, nil
}

// exitOf is the exit code in what a command returned.
func exitOf(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || !exit.Exited() {
		return 0, err
	}
	return exit.ExitCode(), nil
}

// oneResult reads a text that must be one Result and nothing else.
func oneResult(text []byte) (*belljar.Result, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var res belljar.Result
	if err := dec.Decode(&res); err != nil {
		return nil, fmt.Errorf("not a Result: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more than one Result")
	}
	return &res, nil
}

// exitFor is the documented exit code of `belljar run`.
func exitFor(res *belljar.Result) int {
	switch res.Status {
	case belljar.StatusExited, belljar.StatusSignalled:
		if res.Stage == belljar.StageCompile {
			return 123
		}
		return *res.ExitCode
	case belljar.StatusTimedOut:
		return 124
	case belljar.StatusOutOfMemory, belljar.StatusOutputLimit:
		return 137
	case belljar.StatusCancelled:
		return 130
	case belljar.StatusRefused:
		if res.Refusal.Code == belljar.CodeNoToolchain {
			return 127
		}
		return 126
	}
	return 125
}
