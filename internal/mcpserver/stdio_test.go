package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar/internal/testkit"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// serveChild makes the test binary a server on its own stdin and stdout.
const serveChild = "BELLJAR_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveChild) == "" {
		os.Exit(m.Run())
	}
	tr, err := Stdio()
	if err == nil {
		err = New(Options{Runner: newEngine()}).Serve(context.Background(), tr)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

// TestConversations plays each file of testdata over real pipes: the lines of
// "send" are sent one by one, after a request its answer is waited for, and all
// that came back is compared with "want".
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversation: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			testkit.LeakCheck(t)
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(ar.Files) != 2 || ar.Files[0].Name != "send" || ar.Files[1].Name != "want" {
				t.Fatalf("%s must have send and want", file)
			}
			got := converse(t, ar.Files[0].Data)
			if *update {
				ar.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(ar.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got; go test -update writes it anew:\n%s", diff)
			}
		})
	}
}

func converse(t *testing.T, send []byte) string {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine()
	served := make(chan error, 1)
	go func() {
		served <- New(Options{Runner: e, Version: "test"}).Serve(context.Background(), Pipes(inR, outW))
		outW.Close()
	}()
	answers := bufio.NewReader(outR)
	var log strings.Builder
	for line := range bytes.Lines(send) {
		if text, ok := bytes.CutPrefix(line, []byte("#wait ")); ok {
			switch strings.TrimSpace(string(text)) {
			case "started":
				<-e.started
			case "cancelled":
				<-e.cancelled
			case "answer":
				log.Write(tidy(t, nextLine(t, answers)))
			}
			continue
		}
		if _, err := inW.Write(line); err != nil {
			t.Fatal(err)
		}
		if !answered(line) {
			continue
		}
		log.Write(tidy(t, nextLine(t, answers)))
	}
	inW.Close() // the end of stdin ends the session
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	rest, err := io.ReadAll(answers)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(rest) {
		log.WriteString("after the end: ")
		log.Write(tidy(t, line))
	}
	outR.Close()
	return log.String()
}

func nextLine(t *testing.T, r *bufio.Reader) []byte {
	t.Helper()
	line, err := r.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// answered tells whether a line gets an answer at once: a request that does not
// block, and what is no message.
func answered(line []byte) bool {
	var m struct{ ID, Method any }
	if json.Unmarshal(line, &m) != nil {
		return len(bytes.TrimSpace(line)) > 0
	}
	return (m.ID != nil || m.Method == nil) && !bytes.Contains(line, []byte(`"block"`))
}

// tidy indents an answer and takes out the description, which has golden files of
// its own, and the schema.
func tidy(t *testing.T, line []byte) []byte {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber() // an id must come back digit for digit
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if res, ok := m["result"].(map[string]any); ok {
		if tools, ok := res["tools"].([]any); ok {
			for _, tool := range tools {
				delete(tool.(map[string]any), "description")
				delete(tool.(map[string]any), "inputSchema")
			}
		}
		if out, ok := res["structuredContent"].(map[string]any); ok {
			for name := range out {
				switch name {
				case "ok", "status", "stage", "refusal", "error", "stdout":
				default:
					delete(out, name)
				}
			}
		}
	}
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// TestClientThatDoesNotRead leaves an answer in a full pipe: the server ends all
// the same, by the end of stdin and by its context.
func TestClientThatDoesNotRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		more string // sent after the call
		stop bool   // end by the context; else by the end of stdin
	}{
		{name: "end of stdin"},
		{name: "told to end", stop: true},
		{name: "lines that are no messages before the end of stdin", more: "a\nb\nc\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.LeakCheck(t)
			inR, inW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			outR, outW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out := &noticed{File: outW, begun: make(chan struct{}, 16)}
			s := New(Options{Runner: newEngine()})
			s.farewell = 20 * time.Millisecond
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx, pipes(inR, out, s.farewell)) }()
			send := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"print ` + strings.Repeat("x", 300_000) + `"}}}` + "\n"
			if _, err := io.WriteString(inW, send); err != nil {
				t.Fatal(err)
			}
			<-out.begun
			<-out.begun // the answer that does not fit
			if _, err := io.WriteString(inW, tt.more); err != nil {
				t.Fatal(err)
			}
			if tt.stop {
				cancel()
			} else {
				inW.Close()
			}
			err = <-served
			if tt.stop && !errors.Is(err, context.Canceled) || !tt.stop && err != nil {
				t.Errorf("serve: %v", err)
			}
			outR.Close() // ends the blocked write
			inW.Close()
			outW.Close()
		})
	}
}

// noticed tells when a write begins.
type noticed struct {
	*os.File
	begun chan struct{}
}

func (n *noticed) Write(p []byte) (int, error) {
	n.begun <- struct{}{}
	return n.File.Write(p)
}

// TestNothingButProtocolOnStdout lets the fake engine and a child of it print to
// stdout in the middle of a call, in a process of its own.
func TestNothingButProtocolOnStdout(t *testing.T) {
	testkit.LeakCheck(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), serveChild+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errText bytes.Buffer
	cmd.Stderr = &errText
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"stray"}}}`,
	} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		reply, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; stderr: %s", err, errText.String())
		}
		if strings.Contains(reply, "forged") {
			t.Errorf("on stdout: %s", reply)
		}
	}
	in.Close()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) > 0 {
		t.Errorf("more on stdout: %q", rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, errText.String())
	}
	if n := strings.Count(errText.String(), "forged"); n != 2 {
		t.Errorf("%d of 2 stray lines on stderr: %q", n, errText.String())
	}
}

func TestFrames(t *testing.T) {
	good := `{"jsonrpc":"2.0","method":"a"}`
	tests := []struct {
		name, in, passed string
		replies          int
	}{
		{"messages", good + "\n" + good + "\n", good + "\n" + good + "\n", 0},
		{"blank lines and CRLF", "\r\n\n" + good + "\r\n", good + "\n", 0},
		{"last line without an end", good, good + "\n", 0},
		{"no JSON", "hello\n" + good + "\n", good + "\n", 1},
		{"no message", "{}\n5\nnull\n" + good + "\n", good + "\n", 3},
		{"too long", strings.Repeat("x", 300) + "\n" + good + "\n", good + "\n", 1},
		{"too long and no end", strings.Repeat("x", 300), "", 1},
		{"a batch", "[" + good + "]\n[]\n" + good + "\n", good + "\n", 2},
		{"an id that is no whole number", `{"jsonrpc":"2.0","id":1.5,"method":"a"}` + "\n", "", 1},
		{"two values in a line", good + good + "\n", "", 1},
		{"a header of another protocol", "Content-Length: 30\r\n\r\n" + good + "\n", good + "\n", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var replies [][]byte
			f := &frames{r: bufio.NewReaderSize(strings.NewReader(tt.in), 16), max: 200, reply: func(b []byte) { replies = append(replies, b) }}
			got, err := io.ReadAll(f)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.passed || len(replies) != tt.replies {
				t.Errorf("passed %q, %d replies %q", got, len(replies), replies)
			}
			for _, r := range replies {
				if !json.Valid(r) || !bytes.HasSuffix(r, []byte("}\n")) {
					t.Errorf("reply %q", r)
				}
			}
		})
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("{}\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fr := &frames{r: bufio.NewReaderSize(bytes.NewReader(in), 16), max: 200, reply: func(b []byte) {
			if !json.Valid(b) {
				t.Errorf("reply %q", b)
			}
		}}
		got, err := io.ReadAll(fr)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(got) {
			if !json.Valid(line) {
				t.Errorf("passed on %q", line)
			}
		}
	})
}
