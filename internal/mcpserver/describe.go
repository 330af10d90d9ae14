package mcpserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	toolName = "execute_code"

	maxToolLines   = 25  // of signatures in the description
	maxToolSummary = 110 // characters of a tool's description
)

// tool defines execute_code as it is with these tools and languages. There is no output schema:
// an answer to wrong arguments would have to conform to it.
func (s *Server) tool(tools []belljar.Tool, langs []string) *mcp.Tool {
	if len(langs) == 0 {
		langs = []string{"python"}
	}
	// Without tools a script reaches nothing; with them, what the tools reach. What
	// an upstream says of itself is not taken as a promise.
	reaches := len(tools) > 0
	return &mcp.Tool{
		Name:        toolName,
		Title:       "Execute code",
		Description: s.describe(tools, langs),
		InputSchema: s.inputSchema(langs),
		Annotations: &mcp.ToolAnnotations{
			Title:           "Execute code",
			ReadOnlyHint:    false,
			IdempotentHint:  false,
			DestructiveHint: &reaches,
			OpenWorldHint:   &reaches,
		},
	}
}

func (s *Server) describe(tools []belljar.Tool, langs []string) string {
	tools = slices.SortedFunc(slices.Values(tools), func(a, b belljar.Tool) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("Run a script (%s) in a sandbox and get back what it prints. Use it to compute, and to compose tools: call them in loops, filter and join their answers in code, and print only what matters. The answers themselves never enter your context, so one call replaces many rounds.", strings.Join(langs, ", "))
	line("")
	line("Example:")
	for _, l := range example(tools) {
		line("  %s", l)
	}
	line("")
	limit := seconds(s.opt.Timeout)
	if s.opt.MaxTimeout > s.opt.Timeout {
		limit += fmt.Sprintf(" (timeout_s: up to %s)", seconds(s.opt.MaxTimeout))
	}
	line("Time limit: %s. Nothing persists between calls: no variables, no files. Only what the script prints comes back. No network.", limit)
	line("")
	line("Tools, called by keyword: tools.NAME(arg=value), up to %d calls. A failed call raises tools.ToolError.", s.opt.MaxCalls)
	if len(tools) == 0 {
		line("(none)")
	}
	for i, t := range tools {
		if i == maxToolLines {
			names := make([]string, 0, len(tools)-i)
			for _, t := range tools[i:] {
				names = append(names, t.Name)
			}
			line("(+%d more, same calling shape: %s)", len(names), strings.Join(names, ", "))
			break
		}
		if sum := summary(t.Description); sum != "" {
			line("%s  # %s", s.opt.Signature(t), sum)
		} else {
			line("%s", s.opt.Signature(t))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// summary is the first line of a description. Descriptions come from upstream
// servers: control characters in them must not make lines of their own.
func summary(description string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	first = strings.Join(strings.FieldsFunc(first, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 }), " ")
	if utf8.RuneCountInString(first) <= maxToolSummary {
		return first
	}
	return strings.TrimRight(string([]rune(first)[:maxToolSummary-1]), " ") + "…"
}

func (s *Server) inputSchema(langs []string) map[string]any {
	str := func(about string) map[string]any { return map[string]any{"type": "string", "description": about} }
	lang := str("The script's language.")
	lang["enum"] = langs
	lang["default"] = langs[0]
	return map[string]any{
		"type":                 "object",
		"additionalProperties": false,
		"required":             []string{"code"},
		"properties": map[string]any{
			"code": str("The script. What it prints is the answer."),
			"lang": lang,
			"timeout_s": map[string]any{
				"type": "number", "exclusiveMinimum": 0, "maximum": s.opt.MaxTimeout.Seconds(),
				"description": "Time limit in seconds; default " + strconv.FormatFloat(s.opt.Timeout.Seconds(), 'g', -1, 64) + ".",
			},
			"stdin": str("Text for the script's standard input."),
			"files": map[string]any{
				"type":        "array",
				"description": "Files to put into the script's working directory.",
				"items": map[string]any{
					"type": "object", "additionalProperties": false, "required": []string{"name", "content"},
					"properties": map[string]any{
						"name":     str("Path relative to the working directory."),
						"content":  str("The file's content."),
						"encoding": map[string]any{"type": "string", "enum": []string{"utf8", "base64"}, "default": "utf8"},
					},
				},
			},
		},
	}
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
