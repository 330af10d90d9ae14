package audit

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar"
)

// The test binary is its own child: these variables say so.
const (
	childEnv  = "BELLJAR_AUDIT_TEST_CHILD" // the path of the journal
	childName = "BELLJAR_AUDIT_TEST_NAME"  // the run under which it records
	childMax  = "BELLJAR_AUDIT_TEST_COUNT" // records before it ends; 0: never
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child records calls 0, 1, 2 ... and prints each number once it is safe.
func child(path string) error {
	var n int
	if _, err := fmt.Sscan(os.Getenv(childMax), &n); err != nil {
		return err
	}
	j, err := Open(Config{Path: path})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; n == 0 || i < n; i++ {
		r := belljar.Record{Run: os.Getenv(childName), Event: "call", Name: "ptc:x", Outcome: "ok",
			Args: fmt.Sprintf(`{"i":%d}`, i), Summary: strings.Repeat("s", i%150)}
		if err := j.Append(ctx, r); err != nil {
			return err
		}
		if i%3 != 2 { // commits of one and of several records
			continue
		}
		if err := j.Flush(ctx); err != nil {
			return err
		}
		if _, err := fmt.Println(i); err != nil {
			return err
		}
	}
	return j.Close()
}

func startChild(t *testing.T, path, name string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path, childName+"="+name, fmt.Sprintf("%s=%d", childMax, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// complete fails unless run holds exactly the calls 0 to at least last, in order.
func complete(t *testing.T, j *Journal, run string, last int) {
	t.Helper()
	got := list(t, j, Filter{Run: run, Limit: 1e6})
	if len(got) <= last {
		t.Fatalf("%s: %d records, but call %d was acknowledged", run, len(got), last)
	}
	for i, r := range got {
		if want := fmt.Sprintf(`{"i":%d}`, len(got)-1-i); r.Args != want {
			t.Fatalf("%s: record %d holds %s, want %s", run, r.Seq, r.Args, want)
		}
	}
}

// Three processes make the file together, write at once, and lose nothing.
func TestManyProcesses(t *testing.T) {
	path := place(t)
	const n = 300
	var cmds []*exec.Cmd
	var readers sync.WaitGroup
	for i := range 3 {
		cmd, out := startChild(t, path, fmt.Sprintf("run_%d", i), n)
		readers.Go(func() {
			for out.Scan() { // keeps the pipe empty; ends with the child
			}
		})
		cmds = append(cmds, cmd)
	}
	readers.Wait()
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("child %d: %v", i, err)
		}
	}
	j := open(t, Config{Path: path})
	for i := range cmds {
		complete(t, j, fmt.Sprintf("run_%d", i), n-1)
	}
	all := list(t, j, Filter{Limit: 1e6})
	if len(all) != 3*n || all[0].Seq != 3*n {
		t.Errorf("%d records, the newest has number %d; want %d", len(all), all[0].Seq, 3*n)
	}
}

// What was acknowledged is there after kill -9, whenever it comes: the same file
// goes through 60 deaths.
func TestKilled(t *testing.T) {
	path := place(t)
	for round := range 60 {
		run := fmt.Sprintf("run_%d", round)
		cmd, out := startChild(t, path, run, 0)
		last := -1
		var killer sync.WaitGroup
		for out.Scan() {
			if last < 0 { // the first acknowledged record: now the child is writing
				killer.Go(func() {
					time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
					if err := cmd.Process.Kill(); err != nil {
						t.Errorf("kill: %v", err)
					}
				})
			}
			if _, err := fmt.Sscan(out.Text(), &last); err != nil {
				t.Errorf("child said %q", out.Text())
			}
		}
		killer.Wait()
		if err := cmd.Wait(); err == nil || last < 0 {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}
		if round%10 == 9 {
			j, err := Open(Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			complete(t, j, run, last)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			checkWithoutOpen(t, path, run, last)
		}
	}
	j := open(t, Config{Path: path})
	appendAll(t, j, call("after", "x"))
	if ok := integrity(t, path); ok != "ok" {
		t.Errorf("integrity check: %s", ok)
	}
}

// checkWithoutOpen reads as `audit list` in another process would, before any
// writer has cleaned up.
func checkWithoutOpen(t *testing.T, path, run string, last int) {
	t.Helper()
	j := &Journal{path: path, ready: make(chan struct{})}
	close(j.ready)
	complete(t, j, run, last)
}

func integrity(t *testing.T, path string) string {
	t.Helper()
	db, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	s, err := db.prepare("PRAGMA integrity_check")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if row, err := s.step(); err != nil || !row {
		t.Fatalf("integrity check: %v", err)
	}
	return s.text(0)
}
