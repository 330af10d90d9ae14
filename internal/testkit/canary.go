package testkit

import (
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Canary is a set of things outside any sandbox that a run must not reach. Each
// holds or answers the text "canary-" and the nonce.
type Canary struct {
	Nonce    string
	File     string // world-readable file; its content is the text
	Env      string // variable of this process; its value is the text
	Port     string // of a listener on the loopback address
	Sock     string // name of an abstract UNIX socket, without the leading NUL
	PathSock string // path of an ordinary UNIX socket
	Proc     string // word in the arguments of a process on the host

	reached atomic.Int64
}

// NewCanary sets the canaries up and shows from outside that they live: a dead
// canary proves nothing. They are gone after the test.
func NewCanary(t *testing.T) *Canary {
	t.Helper()
	nonce := strings.ToLower(rand.Text()[:12])
	dir := publicDir(t, os.Geteuid())
	c := &Canary{
		Nonce:    nonce,
		File:     filepath.Join(dir, "canary-"+nonce+".txt"),
		Env:      "BELLJAR_TEST_CANARY_" + strings.ToUpper(nonce),
		Sock:     "belljar-canary-" + nonce,
		PathSock: filepath.Join(dir, "sock"),
		Proc:     "canary-process-" + nonce,
	}
	if err := os.WriteFile(c.File, []byte(c.text()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(c.Env, c.text())

	c.Port = c.listen(t, "tcp", "127.0.0.1:0")
	c.listen(t, "unix", "@"+c.Sock)
	c.listen(t, "unix", c.PathSock)
	for _, at := range [][2]string{{"tcp", "127.0.0.1:" + c.Port}, {"unix", "@" + c.Sock}, {"unix", c.PathSock}} {
		conn, err := net.Dial(at[0], at[1])
		if err != nil {
			t.Fatalf("canary: %v", err)
		}
		buf := make([]byte, len(c.text()))
		if n, _ := conn.Read(buf); string(buf[:n]) != c.text() {
			t.Fatalf("canary on %s answered %q", at[1], buf[:n])
		}
		conn.Close()
	}
	c.reached.Store(0)

	proc := exec.Command("sh", "-c", "read x", c.Proc)
	in, err := proc.StdinPipe() // the process lives until this end is closed
	if err != nil {
		t.Fatal(err)
	}
	if err := proc.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = proc.Wait() // read fails at the end of its input: any end is right
	})
	return c
}

func (c *Canary) text() string { return "canary-" + c.Nonce }

// listen answers every connection with the text and counts it.
func (c *Canary) listen(t *testing.T, network, addr string) (port string) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatalf("canary: %v", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed by the clean-up
			}
			c.reached.Add(1)
			_, _ = conn.Write([]byte(c.text())) // who hangs up early has still been counted
			conn.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return strconv.Itoa(a.Port)
	}
	return ""
}

// Fill puts the canaries' names in place of the @@CANARY_...@@ words of a text.
func (c *Canary) Fill(text string) string {
	return strings.NewReplacer(
		"@@NONCE@@", c.Nonce,
		"@@CANARY_FILE@@", c.File,
		"@@CANARY_NAME@@", filepath.Base(c.File),
		"@@CANARY_ENV@@", c.Env,
		"@@CANARY_PORT@@", c.Port,
		"@@CANARY_SOCK@@", c.Sock,
		"@@CANARY_PATHSOCK@@", c.PathSock,
		"@@CANARY_PROC@@", c.Proc,
	).Replace(text)
}

// Unharmed fails the test if a listener was reached, or if one of the texts (a
// reply, a log, a journal) holds what only the canaries hold.
func (c *Canary) Unharmed(t testing.TB, texts ...string) {
	t.Helper()
	if n := c.reached.Load(); n > 0 {
		t.Errorf("canary: %d connections from a run", n)
	}
	for _, text := range texts {
		// The file's name has the same words; only the bare text is a leak.
		if strings.Contains(strings.ReplaceAll(text, filepath.Base(c.File), ""), c.text()) {
			t.Errorf("canary leaked:\n%s", text)
		}
	}
}
