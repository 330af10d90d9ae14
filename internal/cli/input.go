package cli

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

const (
	maxSource = 4 << 20   // bytes read of a source; the engine's own bound is lower
	maxInput  = 256 << 20 // bytes read of one --file; the disk limit is lower
	maxStdin  = 1 << 20
)

// request makes a Request of the command line and the files it names.
func (a *app) request(ctx context.Context, f *runFlags, kind belljar.Kind, file string, languageOf func(file, source string) string) (*belljar.Request, error) {
	req := &belljar.Request{
		Kind: kind, Lang: f.lang, Args: f.args, Limits: f.limits,
		Isolation: belljar.Level(f.isolation), Session: f.session, Caller: "cli",
		Tools: f.selection(), Fence: f.fence,
	}
	if file == "-" && f.stdin == "-" {
		return nil, belljar.Refuse(belljar.CodeBadRequest, "Put one of them into a file.", "Source and stdin cannot both come from stdin.")
	}
	if err := a.readSource(ctx, req, file); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.Source) == "" {
		if file == "-" {
			return nil, belljar.Refuse(belljar.CodeEmptySource, "Pipe one in, or name a FILE.", "There is no program on stdin.")
		}
		return nil, belljar.Refuse(belljar.CodeEmptySource, "Name a file with a program.", "There is no program in %s: it is empty.", file)
	}
	if req.Lang == "" {
		req.Lang = languageOf(file, req.Source)
		if req.Lang == "" {
			where := "the name " + filepath.Base(file)
			if file == "-" {
				where = "stdin"
			}
			return nil, belljar.Refuse(belljar.CodeUnknownLanguage, "Name it with --lang.", "Cannot tell the language from %s, and there is no #! line that says.", where)
		}
	}
	for _, kv := range f.env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, belljar.Refuse(belljar.CodeBadEnv, "Write --env NAME=VALUE.", "--env %s has no value.", kv)
		}
		if req.Env == nil {
			req.Env = map[string]string{}
		}
		req.Env[k] = v
	}
	for _, spec := range f.files {
		in, err := readInput(ctx, spec)
		if err != nil {
			return nil, err
		}
		req.Files = append(req.Files, in)
	}
	var err error
	req.Stdin, err = a.readStdin(ctx, f.stdin, file == "-")
	return req, err
}

func (a *app) readSource(ctx context.Context, req *belljar.Request, file string) error {
	if file == "-" {
		text, err := readAll(ctx, a.in, maxSource)
		if errors.Is(err, errTooLong) {
			return belljar.Refuse(belljar.CodeSourceTooLarge, "Move data out of the source and give it with --file.", "The source on stdin has more than %d bytes.", maxSource)
		}
		req.Source = string(text)
		return err
	}
	text, err := readFile(ctx, file, maxSource)
	if errors.Is(err, errTooLong) {
		return belljar.Refuse(belljar.CodeSourceTooLarge, "Move data out of the source and give it with --file.", "%s has more than %d bytes.", file, maxSource)
	}
	if isCancelled(err) {
		return err
	}
	if err != nil {
		return belljar.Refuse(belljar.CodeBadRequest, "Name a file that can be read, or - for stdin.", "Cannot read %s: %v.", file, bare(err))
	}
	req.Source = string(text)
	// Tracebacks then show the name that the user knows.
	if base := filepath.Base(file); plainName(base) {
		req.Name = base
	}
	return nil
}

// plainName tells whether a name needs no thought in a path or on a command line.
func plainName(name string) bool {
	if name == "" || len(name) > 100 || name[0] == '.' || name[0] == '-' {
		return false
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r)) {
			return false
		}
	}
	return true
}

// readInput reads SRC[:NAME]. A file whose own name has a colon wins.
func readInput(ctx context.Context, spec string) (belljar.File, error) {
	src, name := spec, ""
	if _, err := os.Lstat(spec); err != nil {
		if i := strings.LastIndexByte(spec, ':'); i > 0 {
			src, name = spec[:i], spec[i+1:]
		}
	}
	if name == "" {
		name = filepath.Base(src)
	}
	data, err := readFile(ctx, src, maxInput)
	if isCancelled(err) {
		return belljar.File{}, err
	}
	if err != nil {
		return belljar.File{}, belljar.Refuse(belljar.CodeBadRequest, "Name a file that can be read.", "Cannot read --file %s: %v.", src, bare(err))
	}
	if utf8.Valid(data) {
		return belljar.File{Name: name, Content: string(data)}, nil
	}
	return belljar.File{Name: name, Content: base64.StdEncoding.EncodeToString(data), Encoding: "base64"}, nil
}

// readAll reads to the end, or until the call is cancelled.
func readAll(ctx context.Context, in *os.File, most int64) ([]byte, error) {
	if in == nil {
		return nil, nil
	}
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	// The goroutine has no owner that waits: a read of a terminal or a pipe cannot
	// be interrupted. It ends with its stream or with the process.
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, most+1))
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("read stdin: %w", r.err)
		}
		if int64(len(r.data)) > most {
			return nil, errTooLong
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
