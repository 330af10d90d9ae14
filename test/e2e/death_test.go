package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/testkit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestKilled kills the whole command at random instants of a run. Processes and
// mounts go with it; groups are swept by the next start, which the leak check
// waits for; the journal still opens.
func TestKilled(t *testing.T) {
	testkit.Need(t, "userns", "python")
	for _, as := range []string{"root", "user"} {
		t.Run(as, func(t *testing.T) {
			if as == "root" {
				testkit.Need(t, "root")
			} else if !testkit.AsUser(t, 54322) {
				return
			}
			testkit.LeakCheck(t)
			killed(t)
		})
	}
}

func killed(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 25
	}
	dir, env := workspace(t)
	word := fmt.Sprintf("belljar-e2e-killed-%d", os.Getpid())
	script := filepath.Join(dir, "linger.py")
	text := "import os, subprocess, sys\ntools.read_file(path='a.txt')\n" +
		"subprocess.Popen(['sleep', '61'], start_new_session=True)\n" +
		"subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)', '" + word + "'])\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		cmd := exec.Command("belljar", "run", "--workspace", dir, script)
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rand.N(80 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		soon(t, "processes of a killed command", func() []string { return append(processesWith(word), orphans()...) })
	}
	cmd := exec.Command("belljar", "run", "--workspace", dir, "-l", "python", "-")
	cmd.Env, cmd.Stdin = env, strings.NewReader("print(tools.read_file(path='a.txt'))")
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), "alpha\n") {
		t.Errorf("the next run: %v %q", err, out)
	}
	cmd = exec.Command("belljar", "audit", "list")
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("ptc:read_file")) {
		t.Errorf("the journal: %v\n%s", err, out)
	}
}

// soon fails if something is still there after a second.
func soon(t *testing.T, what string, left func() []string) {
	t.Helper()
	var list []string
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if list = left(); len(list) == 0 {
			return
		}
	}
	t.Errorf("%s: %v", what, list)
}

// orphans are spawners whose engine is gone.
func orphans() (pids []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(text, []byte("belljar-spawner")) {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if bytes.Contains(status, []byte("\nPPid:\t1\n")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// TestLongLife plays many runs on one server and counts what it holds.
func TestLongLife(t *testing.T) {
	testkit.Need(t, "userns", "python")
	testkit.LeakCheck(t)
	rounds := 1000
	if testing.Short() {
		rounds = 60
	}
	cs := server(t, nil)
	pids := processesWith("\x00mcp\x00--workspace\x00")
	play := func(n int) {
		for i := range n {
			if _, text := execute(t.Context(), t, cs, nil, map[string]any{"code": fmt.Sprintf("print(%d, tools.read_file(path='a.txt')[:5])", i)}); text != fmt.Sprintf("%d alpha", i) {
				t.Fatalf("run %d: %q", i, text)
			}
		}
	}
	// A run that comes while the last one's slot is being cleared gets another slot;
	// all that there will be are made now.
	var several sync.WaitGroup
	for range 4 {
		several.Go(func() {
			for range 5 {
				_, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "print(1)"}})
			}
		})
	}
	several.Wait()
	play(20)
	before := holdings(pids)
	play(rounds)
	soon(t, "more than before", func() []string {
		var more []string
		for what, n := range holdings(pids) {
			if n > before[what] {
				more = append(more, fmt.Sprintf("%s %d, was %d", what, n, before[what]))
			}
		}
		return more
	})
}

// holdings counts the descriptors, threads' children and mounts of processes.
func holdings(pids []string) map[string]int {
	held := map[string]int{}
	for _, pid := range pids {
		fds, _ := os.ReadDir("/proc/" + pid + "/fd")
		held["descriptors of "+pid] = len(fds)
		children, _ := filepath.Glob("/proc/" + pid + "/task/*/children")
		for _, file := range children {
			text, _ := os.ReadFile(file)
			held["children of "+pid] += len(strings.Fields(string(text)))
		}
		mounts, _ := os.ReadFile("/proc/" + pid + "/mountinfo")
		held["mounts of "+pid] = bytes.Count(mounts, []byte("\n"))
	}
	return held
}
