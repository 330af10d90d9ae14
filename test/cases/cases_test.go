package cases

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

// userID is a made-up ordinary user: 65534 would not do, because it is also what
// every id without a mapping is shown as.
const userID = 54322

// TestCases plays everything with the rights there are and, as root, once more as
// an ordinary user.
func TestCases(t *testing.T) {
	if testing.Short() {
		t.Setenv(shortEnv, "1")
	}
	if _, err := command(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Run("root", playAll)
	}
	t.Run("user", func(t *testing.T) {
		if testkit.AsUser(t, userID) {
			playAll(t)
		}
	})
}

func playAll(t *testing.T) {
	b := open(t)
	t.Run("scanner", b.scannerSees)
	t.Run("alone", func(t *testing.T) {
		for _, c := range all(t) {
			if alone[c.ID] && !left(c) {
				t.Run(c.ID, func(t *testing.T) { b.judge(t, c) })
			}
		}
	})
	t.Run("beside", func(t *testing.T) {
		for _, c := range all(t) {
			if !alone[c.ID] && !left(c) {
				t.Run(c.ID, func(t *testing.T) {
					t.Parallel()
					b.judge(t, c)
				})
			}
		}
	})
}

// left tells whether a case is left out for shortness.
func left(c *Case) bool { return long[c.ID] && os.Getenv(shortEnv) != "" }

// judge plays one case and compares what came of it with what is known.
func (b *bench) judge(t *testing.T, c *Case) {
	v := newVerdict(t)
	switch {
	case c.Request != nil:
		b.calls(v, c)
	case c.Surface == "cli":
		b.terminal(v, c)
	case c.Surface == "mcp":
		(&play{verdict: v.on("mcp over pipes"), b: b, c: c, s: raw{b}, nonce: newNonce()}).run()
	default:
		b.everywhere(v, c)
	}
	problems := strings.Join(v.found(), "\n")
	why, failing := known[c.ID]
	switch {
	case racy[c.ID] != "":
		t.Logf("known: %s\n%s", racy[c.ID], problems)
	case failing && problems == "":
		t.Errorf("%s passes: take it off the list of known failures (%s)", c.ID, why)
	case failing:
		t.Logf("known: %s\n%s", why, problems)
	case problems != "":
		t.Errorf("%s (%s)\n%s", c.Title, c.Kind, problems)
	}
}

// everywhere plays a case on all its surfaces at once and compares the replies.
func (b *bench) everywhere(v *verdict, c *Case) {
	names := []string{"library", "command", "mcp"}
	surfaces := map[string]surface{"library": library{b}, "command": commandLine{b}, "mcp": protocol{b}}
	switch {
	case c.Tools != nil: // Go functions are tools of this process alone
		names = []string{"library", "mcp"}
	case c.As == "snippet":
		names = []string{"library", "command"}
	}
	replies := make([]*reply, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			replies[i] = (&play{verdict: v.on(name), b: b, c: c, s: surfaces[name], nonce: newNonce()}).run()
		})
		if alone[c.ID] {
			wg.Wait()
		}
	}
	wg.Wait()
	if slices.Contains(replies, nil) {
		return
	}
	for i := range names[1:] {
		for _, w := range agree(c, replies[0], replies[i+1]) {
			v.Errorf("%s and %s do not agree: %s", names[0], names[i+1], w)
		}
	}
}

// scannerSees shows that the search for what a run left behind finds a run: one
// that finds nothing proves nothing.
func (b *bench) scannerSees(t *testing.T) {
	nonce := newNonce()
	ctx, cancel := contextOf(t)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := library{b}.run(ctx, &program{nonce: nonce, source: "import time\ntime.sleep(4)"})
		done <- err
	}()
	eventually(t, "the run's process", func() bool { return len(processesOf(nonce)) > 0 })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end", func() bool { return len(processesOf(nonce)) == 0 })
}
