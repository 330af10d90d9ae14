package toolchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belljar/belljar/internal/language"
)

// probeTime is how long an interpreter may take to say what it is. A version
// manager's shim on a cold disk takes seconds.
const probeTime = 20 * time.Second

// answer is what a language's probe prints.
type answer struct {
	Version    string   `json:"version"`
	Executable string   `json:"executable"`
	Isolated   bool     `json:"isolated"` // a virtual environment
	Folders    []string `json:"folders"`
	Packages   []string `json:"packages"`
}

// probe runs the interpreter at path and makes a record of its answer. The error is
// a clause fit for a refusal's reason.
func (f *Finder) probe(ctx context.Context, l *language.Language, path string) (*record, error) {
	stamps := []stamp{stampOf(path)}
	if stamps[0].Inode == 0 {
		return nil, fmt.Errorf("%s does not exist", path)
	}
	a, err := f.run(ctx, l, path, f.host.bareEnv())
	if err != nil {
		return nil, err
	}
	t := Toolchain{Lang: l.Name, Version: a.Version}
	if t.Path, err = realPath(path, a); err != nil {
		return nil, err
	}
	if isShim(t.Path) {
		return nil, fmt.Errorf("%s says that it is %s, which is a script", path, t.Path)
	}
	if t.Folders, err = f.host.folders(t.Path, a.Folders); err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	for _, p := range a.Packages {
		if !visible(p, t.Folders) && !contains(t.Hidden, p) {
			t.Hidden = append(t.Hidden, p)
		}
	}
	stamps = append(stamps, stampOf(t.Path))
	if a.Isolated {
		// Made anew over the same base, an environment differs only in this file.
		stamps = append(stamps, stampOf(filepath.Join(filepath.Dir(filepath.Dir(t.Path)), "pyvenv.cfg")))
	}
	return &record{Asked: path, Stamps: stamps, Toolchain: t}, nil
}

// ask lets a shim say which interpreter it stands for, then probes that one.
func (f *Finder) ask(ctx context.Context, l *language.Language, shim string) (*record, error) {
	a, err := f.run(ctx, l, shim, f.host.shimEnv())
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(a.Executable) || isShim(a.Executable) {
		return nil, fmt.Errorf("%s is a script that does not lead to an interpreter", shim)
	}
	rec, err := f.probe(ctx, l, a.Executable)
	if err != nil {
		return nil, err
	}
	rec.Asked, rec.Shim = shim, true
	rec.Stamps = append(rec.Stamps, stampOf(shim))
	for _, choice := range f.host.choiceFiles(shim) {
		rec.Stamps = append(rec.Stamps, stampOf(choice))
	}
	return rec, nil
}

// realPath is the program that runs will start: the binary behind all links, except
// in a virtual environment, which is found by the path it is called by.
func realPath(asked string, a *answer) (string, error) {
	path := a.Executable
	if path == "" {
		path = asked
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s says that it is %q, which is no absolute path", asked, path)
	}
	if a.Isolated {
		return filepath.Clean(path), nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s says that it is %s, which is not there", asked, path)
	}
	return real, nil
}

// run asks the program at path what it is: by the language's probe, or by its
// version when there is no probe or the program is too old for it.
func (f *Finder) run(ctx context.Context, l *language.Language, path string, env []string) (*answer, error) {
	probe, err := l.ProbeArgs()
	if err != nil {
		return nil, err
	}
	a := new(answer)
	var failed error
	if probe != nil {
		var printed []byte
		if printed, failed = execute(ctx, path, probe, env); failed == nil {
			if err := json.Unmarshal(printed, a); err != nil {
				failed = fmt.Errorf("%s answered the probe with no JSON", path)
			}
		}
	}
	if (probe == nil || failed != nil) && len(l.Toolchain.Version) > 0 && ctx.Err() == nil {
		printed, err := execute(ctx, path, l.Toolchain.Version, env)
		if err != nil {
			return nil, err
		}
		if a.Version = l.FindVersion(string(printed)); a.Version == "" && failed == nil {
			return nil, fmt.Errorf("%s does not say its version", path)
		}
	}
	if a.Version != "" && older(a.Version, l.Toolchain.Minimum) {
		return nil, fmt.Errorf("%s is version %s, and %s or newer is needed", path, a.Version, l.Toolchain.Minimum)
	}
	if failed != nil {
		return nil, failed
	}
	return a, nil
}

// limitedBuffer keeps the first bytes that a program prints and drops the rest.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	if room := most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// execute runs a program of the operator's and gives what it printed.
func execute(ctx context.Context, path string, args, env []string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.WaitDelay = time.Second // a child of a shim may hold the pipes
	var stdout, stderr limitedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch exit, exited := errors.AsType[*exec.ExitError](err); {
	case err == nil && stdout.Len() == 0: // versions of old were printed on stderr
		return stderr.Bytes(), nil
	case err == nil:
		return stdout.Bytes(), nil
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %v", path, probeTime)
	case exited:
		return nil, fmt.Errorf("%s failed to start (%v)%s", path, exit, lastLine(stderr.String()))
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist, or what it needs to start does not", path)
	default:
		return nil, fmt.Errorf("%s cannot be run (%w)", path, errors.Unwrap(err))
	}
}

// lastLine gives the last thing a program said, as the end of a clause.
func lastLine(s string) string {
	const most = 160
	lines := strings.Split(strings.TrimSpace(s), "\n")
	line := strings.ToValidUTF8(strings.TrimSpace(lines[len(lines)-1]), "?")
	if line == "" {
		return ""
	}
	if r := []rune(line); len(r) > most {
		line = string(r[:most])
	}
	return fmt.Sprintf(": %q", line)
}

// older compares dotted numbers; what is no number counts as 0.
func older(version, minimum string) bool {
	if minimum == "" {
		return false
	}
	have, want := strings.Split(version, "."), strings.Split(minimum, ".")
	for i, w := range want {
		n, _ := strconv.Atoi(w)
		h := 0
		if i < len(have) {
			digits := strings.IndexFunc(have[i], func(r rune) bool { return r < '0' || r > '9' })
			if digits < 0 {
				digits = len(have[i])
			}
			h, _ = strconv.Atoi(have[i][:digits])
		}
		if h != n {
			return h < n
		}
	}
	return false
}

// isShim tells whether path is a script or a version manager's stand-in: something
// that starts an interpreter instead of being one.
func isShim(path string) bool {
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "shims" {
			return true
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return false // probing gives the reason
	}
	defer file.Close()
	var head [2]byte
	n, _ := file.Read(head[:])
	return string(head[:n]) == "#!"
}
