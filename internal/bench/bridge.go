package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/bridge"
	"github.com/belljar/belljar/internal/sandbox"
	"github.com/belljar/belljar/languages"
)

// blobTool is the tool that the bridge is measured with: it answers with as many
// bytes of text as asked, without any work of its own.
const blobTool = "bench_blob"

type blobArgs struct {
	Bytes int `json:"bytes" jsonschema:"length of the answer"`
}

func blob(_ context.Context, in blobArgs) (string, error) {
	if in.Bytes < 0 || in.Bytes > 16<<20 {
		return "", errors.New("bytes must be between 0 and 16 MiB")
	}
	if text, ok := blobs.Load(in.Bytes); ok {
		return text.(string), nil
	}
	text := strings.Repeat("y", in.Bytes)
	blobs.Store(in.Bytes, text)
	return text, nil
}

// blobs are the answers by length: to make one is not what is measured.
var blobs sync.Map

const bridgeScript = `
import time
n, size = %d, %d
for i in range(20): tools.bench_blob(bytes=size)
t = time.perf_counter()
for i in range(n): r = tools.bench_blob(bytes=size)
d = time.perf_counter() - t
assert len(r) == size
print(n / d)
`

// plainBridge is what is usually built: a loopback TCP port, an event loop, JSON
// lines, a blocking client. Both ends are Python, neither checks nor records.
const plainBridge = `
import asyncio, json, sys
n, size = map(int, sys.argv[1:])
child = '''
import json, socket, sys, time
port, n, size = map(int, sys.argv[1:])
c = socket.create_connection(("127.0.0.1", port))
out, inp = c.makefile("w"), c.makefile("r")
def call(i):
    out.write(json.dumps({"id": i, "tool": "blob", "args": {"bytes": size}}) + "\\n"); out.flush()
    return json.loads(inp.readline())["result"]
for i in range(20): call(i)
t = time.perf_counter()
for i in range(n): r = call(i)
d = time.perf_counter() - t
assert len(r) == size
print(n / d)
'''
async def main():
    res = "y" * size
    async def on(r, w):
        while line := await r.readline():
            m = json.loads(line)
            w.write(json.dumps({"id": m["id"], "ok": True, "result": res}).encode() + b"\n")
            await w.drain()
        w.close()
    s = await asyncio.start_server(on, "127.0.0.1", 0)
    p = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", child, str(s.sockets[0].getsockname()[1]), str(n), str(size))
    await p.wait()
    s.close()
asyncio.run(main())
`

func plainRate(python string, calls, size int) func(context.Context) (Sample, error) {
	return func(ctx context.Context) (Sample, error) {
		out, err := exec.CommandContext(ctx, python, "-I", "-c", plainBridge, strconv.Itoa(calls), strconv.Itoa(size)).Output()
		if err != nil {
			return Sample{}, fmt.Errorf("run the plain bridge: %w", err)
		}
		return rate(string(out))
	}
}

// fixed answers every call with the same text: a bridge without policy and journal.
type fixed []byte

func (f fixed) Call(context.Context, string, json.RawMessage) (belljar.Value, error) {
	return belljar.Value{Kind: belljar.ValueText, Data: f}, nil
}

// bridgeAlone measures the bridge as the plain one is: a script in its sandbox, and
// answers that nobody checks or records.
func bridgeAlone(h *sandbox.Host, python string, calls, size int) func(context.Context) (Sample, error) {
	const folder = "/opt/belljar/python"
	return func(ctx context.Context) (Sample, error) {
		var assets []sandbox.File
		for _, name := range []string{"sitecustomize.py", "belljar_tools.py"} {
			text, err := languages.FS.ReadFile("python/" + name)
			if err != nil {
				return Sample{}, err
			}
			assets = append(assets, sandbox.File{Name: folder + "/" + name, Data: text})
		}
		b, err := bridge.Open(ctx, bridge.Config{}, fixed(strings.Repeat("y", size)))
		if err != nil {
			return Sample{}, err
		}
		defer b.Close()
		var out, errs bytes.Buffer
		exit, err := h.Run(ctx, &sandbox.Spec{
			Argv: []string{python, "main.py"}, Env: append([]string{"PYTHONPATH=" + folder}, environ...), Assets: assets,
			Files:  []sandbox.File{{Name: "main.py", Data: fmt.Appendf(nil, bridgeScript, calls, size)}},
			Bridge: b.ChildFile(), Stdout: &out, Stderr: &errs, Limits: limits,
		})
		if err != nil {
			return Sample{}, err
		}
		if exit.Wait != 0 {
			return Sample{}, fmt.Errorf("the script ended with %#x: %s", int(exit.Wait), errs.String())
		}
		return rate(out.String())
	}
}

func bridgeRate(r runner, calls, size int) func(context.Context) (Sample, error) {
	return func(ctx context.Context) (Sample, error) {
		res, err := r.Run(ctx, &belljar.Request{
			Kind: belljar.KindScript, Lang: "python", Source: fmt.Sprintf(bridgeScript, calls, size), Tools: []string{blobTool},
		})
		if err != nil {
			return Sample{}, err
		}
		if !res.OK || res.ExitCode == nil || *res.ExitCode != 0 {
			return Sample{}, fmt.Errorf("the script ended as %s: %s", res.Status, res.Stderr)
		}
		return rate(res.Stdout)
	}
}

func rate(text string) (Sample, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || v <= 0 {
		return Sample{}, fmt.Errorf("read a rate: %q", text)
	}
	return Sample{Rate: v, Faults: -1}, nil
}
