package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

// TestStartBudget counts the page faults of the command's start. They are what
// its time is made of on a machine with shadow paging, and unlike time they come
// out the same on a busy one. What the programs that belljar starts and waits for
// take is counted in.
//
// Over budget? Something heavy is now opened, or made in an init, that this
// command does not need; GODEBUG=inittrace=1 shows the latter.
func TestStartBudget(t *testing.T) {
	testkit.Need(t, "userns", "python")
	dir, env := workspace(t)
	bin := filepath.Join(dir, "belljar")
	// As it is released: the test's own binary may have the race detector in it.
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "../../cmd/belljar")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"empty.py", "hello.py"} {
		text := map[string]string{"hello.py": "print(1)\n"}[name]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		args   []string
		code   int
		faults int64
	}{
		{"nothing to do", []string{"version"}, 0, 850},
		{"refused before anything runs", []string{"run", filepath.Join(dir, "empty.py")}, 126, 1250},
		{"a run, with python's own 850", []string{"run", filepath.Join(dir, "hello.py")}, 0, 2400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			least := int64(1 << 62)
			for range 3 { // the first finds caches cold
				cmd := exec.Command(bin, tt.args...)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code {
					t.Fatalf("%v: %s", err, out)
				}
				least = min(least, cmd.ProcessState.SysUsage().(*syscall.Rusage).Minflt)
			}
			t.Logf("%d page faults of %d", least, tt.faults)
			if least > tt.faults {
				t.Errorf("%d page faults, more than %d", least, tt.faults)
			}
		})
	}
}
