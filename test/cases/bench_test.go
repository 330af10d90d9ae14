package cases

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/mcpserver"
	"github.com/belljar/belljar/internal/testkit"
	"github.com/belljar/belljar/internal/toolset"
	"github.com/belljar/belljar/jar"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	binaryEnv = "BELLJAR_TEST_CASES_BINARY" // where a process started as another user finds the command
	shortEnv  = "BELLJAR_TEST_CASES_SHORT"  // flags do not reach such a process
)

// TestMain plays more cases at once than there are processors on a small machine:
// many of them wait for their limit.
func TestMain(m *testing.M) {
	flag.Parse()
	if runtime.GOMAXPROCS(0) < 4 {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var built string // by this process

// command builds the command once, where every user can start it.
var command = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("/tmp", "cases-")
	if err != nil {
		return "", err
	}
	built = filepath.Join(dir, "belljar")
	if out, err := exec.Command("go", "build", "-o", built, "../../cmd/belljar").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return built, errors.Join(os.Chmod(dir, 0o755), os.Chmod(built, 0o755), os.Setenv(binaryEnv, built))
})

// bench is one user's engine with everything around it. All cases share it, as
// the runs of a long-lived engine do.
type bench struct {
	canary   *testkit.Canary
	jar      *jar.Jar
	tools    *tools
	desk     *desk
	client   *mcp.ClientSession
	binary   string
	work     string // the folder of all state
	hostname string
	log      *lockedText
}

// open sets the bench up. The first run of a process leaves the spawner's program
// in memory for good, so one is made before anything is counted.
func open(t *testing.T) *bench {
	t.Helper()
	testkit.Need(t, "userns", "python")
	binary, err := command()
	if err != nil {
		t.Fatal(err)
	}
	first, err := jar.Open(t.Context(), jar.WithState(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := first.Run(t.Context(), oneLine()); err != nil || !res.OK {
		t.Fatalf("not even one line runs: %+v, %v", res, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	testkit.LeakCheck(t)
	b := &bench{canary: testkit.NewCanary(t), tools: &tools{}, binary: binary, work: t.TempDir(), log: &lockedText{}}
	if b.hostname, err = os.Hostname(); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	var cfg jar.Config
	cfg.Policy.Deny = []string{"forbidden"}
	cfg.Limits.Runs = 8
	b.jar, err = jar.Open(t.Context(), append([]jar.Option{jar.WithConfig(cfg), jar.WithState(filepath.Join(b.work, "library")), jar.WithLogger(log)}, b.tools.options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.jar.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		b.canary.Unharmed(t, b.log.String())
		if n := b.tools.forbidden.Load(); n > 0 {
			t.Errorf("the denied tool was called %d times", n)
		}
	})
	b.serve(t, log)
	return b
}

// serve connects an MCP client to a server on the same engine.
func (b *bench) serve(t *testing.T, log *slog.Logger) {
	t.Helper()
	b.desk = &desk{runner: b.jar.Runner(), waiting: map[string]*program{}}
	server := mcpserver.New(mcpserver.Options{Runner: b.desk, Signature: toolset.Signature, MaxTimeout: 5 * time.Minute, Log: log})
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ours) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "cases", Version: "1"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
		stop()
		if err := <-served; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			t.Errorf("serve: %v", err)
		}
	})
}

// fill puts what the placeholders stand for into a text.
func (b *bench) fill(text, nonce string) string {
	text = strings.NewReplacer("@@NONCE@@", nonce, "@@HOSTNAME@@", b.hostname, "@@HOST_WORKDIR@@", b.work).Replace(text)
	return b.canary.Fill(text)
}

func newNonce() string { return strings.ToLower(rand.Text()[:16]) }

// environ is that of a user whose home is empty; it still holds the canary.
func (b *bench) environ() []string {
	home := filepath.Join(b.work, "home")
	return append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "BELLJAR_STATE_DIR="+filepath.Join(b.work, "command"))
}

// lockedText takes a log.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
