package mcpserver

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/belljar/belljar"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	metaSession = "belljar/session"
	metaFence   = "belljar/fence"

	maxSession = 200 // bytes
	maxCaller  = 100 // bytes of a client's name that are kept
)

// request makes a Request of a call, or says what is wrong with it in words for
// the model.
func request(params *mcp.CallToolParamsRaw, client string) (*belljar.Request, *belljar.Refusal) {
	req := &belljar.Request{Kind: belljar.KindScript, Caller: callerName(client)}
	if err := readArguments(req, params.Arguments); err != nil {
		return nil, err
	}
	if err := readMeta(req, params.Meta); err != nil {
		return nil, err
	}
	return req, nil
}

func readArguments(req *belljar.Request, raw json.RawMessage) *belljar.Refusal {
	if kind(raw) == "nothing" {
		return empty()
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(raw, &args); err != nil {
		return bad("the arguments must be an object, not %s.", kind(raw))
	}
	// Code first: without it, whatever else is wrong matters less.
	if err := json.Unmarshal(args["code"], &req.Source); err != nil || kind(args["code"]) == "nothing" || strings.TrimSpace(req.Source) == "" {
		return empty()
	}
	names := make([]string, 0, len(args))
	for name := range args {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		value := args[name]
		if kind(value) == "nothing" {
			continue // null stands for absent
		}
		switch name {
		case "code":
		case "lang":
			if json.Unmarshal(value, &req.Lang) != nil {
				return bad("lang must be a string, not %s.", kind(value))
			}
		case "stdin":
			if json.Unmarshal(value, &req.Stdin) != nil {
				return bad("stdin must be a string, not %s.", kind(value))
			}
		case "timeout_s":
			ms, err := milliseconds(value)
			if err != nil {
				return err
			}
			req.Limits.TimeoutMS = &ms
		case "files":
			files, err := readFiles(value)
			if err != nil {
				return err
			}
			req.Files = files
		default:
			return bad("there is no argument %q; execute_code takes code, lang, timeout_s, stdin and files.", name)
		}
	}
	return nil
}

func milliseconds(value json.RawMessage) (int64, *belljar.Refusal) {
	var s float64
	if json.Unmarshal(value, &s) != nil {
		return 0, bad("timeout_s must be a number of seconds, not %s.", kind(value))
	}
	if s <= 0 {
		return 0, belljar.Refuse(belljar.CodeBadLimit, "Leave it out for the default.", "timeout_s must be more than 0, not %v.", s)
	}
	// What is beyond any ceiling is brought down to it; only the conversion must
	// not overflow.
	return int64(math.Ceil(math.Min(s*1000, 1<<53))), nil
}

func readFiles(value json.RawMessage) ([]belljar.File, *belljar.Refusal) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) != nil {
		return nil, bad(`files must be an array of {"name", "content"}, not %s.`, kind(value))
	}
	files := make([]belljar.File, 0, len(items))
	for i, item := range items {
		var fields map[string]*string
		if json.Unmarshal(item, &fields) != nil {
			return nil, bad(`files[%d] must be an object of strings: {"name": ..., "content": ...}.`, i)
		}
		name, content := fields["name"], fields["content"]
		if name == nil || content == nil {
			return nil, bad("files[%d] needs a name and a content, both strings.", i)
		}
		file := belljar.File{Name: *name, Content: *content}
		if e := fields["encoding"]; e != nil {
			file.Encoding = *e
		}
		files = append(files, file)
	}
	return files, nil
}

// readMeta takes what the client's program says about the call. A fence that is
// not understood must not be taken for no fence.
func readMeta(req *belljar.Request, meta mcp.Meta) *belljar.Refusal {
	if v, ok := meta[metaSession]; ok {
		s, ok := v.(string)
		if !ok || len(s) > maxSession {
			return bad("_meta %s must be a string of at most %d bytes.", metaSession, maxSession)
		}
		req.Session = s
	}
	if v, ok := meta[metaFence]; ok {
		list, ok := v.([]any)
		if !ok {
			return bad("_meta %s must be an array of tool names.", metaFence)
		}
		req.Fence = make([]string, 0, len(list))
		for _, item := range list {
			name, ok := item.(string)
			if !ok {
				return bad("_meta %s must be an array of tool names.", metaFence)
			}
			req.Fence = append(req.Fence, name)
		}
	}
	return nil
}

// callerName is how the journal calls a client. The name is the client's own
// word: only its length and its characters are checked.
func callerName(client string) string {
	name := strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r > 0x7e {
			return '_'
		}
		return r
	}, client)
	if len(name) > maxCaller {
		name = name[:maxCaller]
	}
	if name == "" {
		return "mcp"
	}
	return "mcp:" + name
}

// kind names the type of a JSON value for a person.
func kind(raw json.RawMessage) string {
	text := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	switch {
	case text == "" || strings.HasPrefix(text, "null"):
		return "nothing"
	case text[0] == '{':
		return "an object"
	case text[0] == '[':
		return "an array"
	case text[0] == '"':
		return "a string"
	case text[0] == 't' || text[0] == 'f':
		return "true or false"
	}
	return "a number"
}

func empty() *belljar.Refusal {
	return belljar.Refuse(belljar.CodeEmptySource, "Give the script in the argument code.", "execute_code called with empty code.")
}

func bad(reason string, args ...any) *belljar.Refusal {
	return belljar.Refuse(belljar.CodeBadRequest, "Correct it and call again.", "execute_code: %s", fmt.Sprintf(reason, args...))
}
