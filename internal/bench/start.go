package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox"
)

// runner is what the engine does for this package.
type runner interface {
	Run(ctx context.Context, req *belljar.Request) (*belljar.Result, error)
}

// bare measures a command as a whole process, without protection.
func bare(argv ...string) func(context.Context) (Sample, error) {
	return func(ctx context.Context) (Sample, error) {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		var out bytes.Buffer
		cmd.Stdout = &out
		begin := time.Now()
		err := cmd.Run()
		wall := time.Since(begin)
		if err != nil {
			return Sample{}, fmt.Errorf("%s: %w", argv[0], err)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			return Sample{}, errors.New("this system does not count page faults")
		}
		return Sample{Wall: wall, Faults: usage.Minflt}, nil
	}
}

var (
	environ = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace", "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}
	limits  = belljar.Limits{TimeoutMS: 30_000, MemoryBytes: 512 << 20, Processes: 64, DiskBytes: 64 << 20,
		Inodes: 10_000, OutputBytes: 16 << 20, OpenFiles: 1024}
)

// isolated measures a program in a sandbox of a running engine.
func isolated(h *sandbox.Host, argv []string, toolchain []string) func(context.Context) (Sample, error) {
	return func(ctx context.Context) (Sample, error) {
		var out bytes.Buffer
		begin := time.Now()
		exit, err := h.Run(ctx, &sandbox.Spec{
			Argv: argv, Toolchain: toolchain, Stdout: &out,
			Env: environ, Limits: limits,
		})
		wall := time.Since(begin)
		if err != nil {
			return Sample{}, err
		}
		if exit.Wait != 0 || out.Len() == 0 {
			return Sample{}, fmt.Errorf("%s ended with %#x", argv[0], int(exit.Wait))
		}
		return Sample{Wall: wall, Faults: exit.Faults}, nil
	}
}

// request measures a run through the whole engine: admission, sandbox, journal.
func request(r runner, req *belljar.Request) func(context.Context) (Sample, error) {
	return func(ctx context.Context) (Sample, error) {
		begin := time.Now()
		res, err := r.Run(ctx, req)
		wall := time.Since(begin)
		if err != nil {
			return Sample{}, err
		}
		if !res.OK || res.ExitCode == nil || *res.ExitCode != 0 {
			return Sample{}, fmt.Errorf("the run ended as %s: %s", res.Status, res.Stderr)
		}
		return Sample{Wall: wall, Faults: -1}, nil
	}
}

const helloC = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"

// compileHello makes the C program of the comparison, in a folder of its own.
func compileHello(ctx context.Context) (dir, bin string, err error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", "", err
	}
	if dir, err = os.MkdirTemp("", "belljar-bench-"); err != nil {
		return "", "", err
	}
	bin = filepath.Join(dir, "hello")
	cmd := exec.CommandContext(ctx, gcc, "-O0", "-x", "c", "-o", bin, "-")
	cmd.Stdin = strings.NewReader(helloC)
	if text, err := cmd.CombinedOutput(); err != nil {
		os.RemoveAll(dir)
		return "", "", fmt.Errorf("compile the C program: %w\n%s", err, text)
	}
	// The sandbox's user is not the one that runs this.
	if err := os.Chmod(dir, 0o755); err != nil {
		os.RemoveAll(dir)
		return "", "", err
	}
	return dir, bin, nil
}
