package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/toolset/plain"
)

// maxReason is the longest text of a tool's own error that is passed on, in bytes.
const maxReason = 16 << 10

// A result is the answer to tools/call as far as we read it.
type result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
	ResultType string            `json:"resultType"`
}

// A block is one piece of content.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     *string `json:"blob"`
	} `json:"resource"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Size        *int64 `json:"size"`

	raw json.RawMessage
}

// unwrap turns a tool result into what a script gets.
//
//   - isError: an error with the text as its reason
//   - structured content: its value; of an object with the one key `result` or
//     `content`, what is in it; a string is text. The blocks beside it are not
//     looked at, for they say the same again.
//   - text blocks only: the texts, joined by line feeds; no blocks: empty text
//   - one image, sound or embedded blob: its bytes with the media type
//   - one embedded text resource: its text
//   - one resource link: {uri, name, ...}
//   - anything else: a list in the server's order, texts as strings, the others
//     as {type, ...} with bytes in base64
func unwrap(raw json.RawMessage) (belljar.Value, error) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		return belljar.Value{}, failed("the server's answer is no tool result")
	}
	if r.ResultType == "input_required" {
		return belljar.Value{}, failed("the tool asks for input from a person, which a script cannot give")
	}
	blocks := make([]block, len(r.Content))
	for i, b := range r.Content {
		if err := json.Unmarshal(b, &blocks[i]); err != nil {
			return belljar.Value{}, failed("the server's answer has a malformed block of content")
		}
		blocks[i].raw = b
	}
	structured := bytes.TrimSpace(r.Structured)
	if string(structured) == "null" {
		structured = nil
	}
	if r.IsError {
		return belljar.Value{}, ownError(blocks, structured)
	}
	if structured != nil {
		inner := open(structured)
		// Some servers repeat the blocks as the structured value; then the
		// blocks are the better reading, for they keep bytes as bytes.
		if len(blocks) == 0 || !sameJSON(inner, r.Content) {
			return jsonValue(inner), nil
		}
	}
	return fromBlocks(blocks)
}

func failed(format string, a ...any) error {
	return &belljar.ToolError{Code: "failed", Reason: fmt.Sprintf(format, a...)}
}

// ownError is what the tool itself says went wrong.
func ownError(blocks []block, structured json.RawMessage) error {
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, b.Text)
		}
	}
	reason := strings.Join(texts, "\n")
	if reason == "" {
		reason = string(structured)
	}
	if reason = plain.Clean(strings.TrimSpace(reason), maxReason); reason == "" {
		reason = "the tool reported an error and did not say which"
	}
	return &belljar.ToolError{Code: "failed", Reason: reason}
}

// open takes the value out of an object with the one key result or content.
func open(v json.RawMessage) json.RawMessage {
	if v[0] != '{' {
		return v
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(v, &m) != nil || len(m) != 1 {
		return v
	}
	for _, key := range []string{"result", "content"} {
		if inner, ok := m[key]; ok {
			return bytes.TrimSpace(inner)
		}
	}
	return v
}

func jsonValue(v json.RawMessage) belljar.Value {
	if v[0] == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return belljar.Value{Kind: belljar.ValueText, Data: []byte(s)}
		}
	}
	return belljar.Value{Kind: belljar.ValueJSON, Data: v}
}

func sameJSON(a json.RawMessage, list []json.RawMessage) bool {
	if a[0] != '[' {
		return false
	}
	b, err := json.Marshal(list)
	if err != nil {
		return false
	}
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	// Marshal escapes < > & and the line separators; the same is done to the other side.
	var z bytes.Buffer
	json.HTMLEscape(&z, x.Bytes())
	return bytes.Equal(z.Bytes(), y.Bytes())
}

func fromBlocks(blocks []block) (belljar.Value, error) {
	if allText(blocks) {
		texts := make([]string, len(blocks))
		for i, b := range blocks {
			texts[i] = b.Text
		}
		return belljar.Value{Kind: belljar.ValueText, Data: []byte(strings.Join(texts, "\n"))}, nil
	}
	if len(blocks) == 1 {
		b := blocks[0]
		switch {
		case b.Type == "image" || b.Type == "audio":
			return bytesValue(b.Data, b.MIMEType)
		case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != nil:
			return bytesValue(*b.Resource.Blob, b.Resource.MIMEType)
		case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
			return belljar.Value{Kind: belljar.ValueText, Data: []byte(*b.Resource.Text)}, nil
		case b.Type == "resource_link":
			return encode(linkOf(b))
		}
	}
	list := make([]any, len(blocks))
	for i, b := range blocks {
		list[i] = mixed(b)
	}
	return encode(list)
}

func allText(blocks []block) bool {
	for _, b := range blocks {
		if b.Type != "text" {
			return false
		}
	}
	return true
}

type link struct {
	Type        string `json:"type,omitempty"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MediaType   string `json:"media_type,omitempty"`
	Size        *int64 `json:"size,omitempty"`
}

func linkOf(b block) link {
	return link{URI: b.URI, Name: b.Name, Title: b.Title, Description: b.Description, MediaType: b.MIMEType, Size: b.Size}
}

type piece struct {
	Type      string  `json:"type"`
	URI       string  `json:"uri,omitempty"`
	MediaType string  `json:"media_type,omitempty"`
	Text      *string `json:"text,omitempty"`
	Data      *string `json:"data,omitempty"` // base64
}

// mixed is one element of a list of unlike blocks.
func mixed(b block) any {
	switch b.Type {
	case "text":
		return b.Text
	case "image", "audio":
		return piece{Type: b.Type, MediaType: b.MIMEType, Data: &b.Data}
	case "resource_link":
		l := linkOf(b)
		l.Type = b.Type
		return l
	case "resource":
		if b.Resource != nil {
			return piece{Type: b.Type, URI: b.Resource.URI, MediaType: b.Resource.MIMEType, Text: b.Resource.Text, Data: b.Resource.Blob}
		}
	}
	return b.raw // a kind of a later day
}

func bytesValue(data, mediaType string) (belljar.Value, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return belljar.Value{}, failed("the server sent bytes that are not base64")
	}
	return belljar.Value{Kind: belljar.ValueBytes, Data: raw, MediaType: mediaTypeOf(mediaType)}, nil
}

// mediaTypeOf keeps a media type that could be one.
func mediaTypeOf(s string) string {
	const other = "application/octet-stream"
	if len(s) > 100 || !strings.Contains(s, "/") {
		return other
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return other
		}
	}
	return s
}

func encode(v any) (belljar.Value, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return belljar.Value{}, errors.Join(errors.New("encode the answer"), err)
	}
	return belljar.Value{Kind: belljar.ValueJSON, Data: bytes.TrimSuffix(buf.Bytes(), []byte("\n"))}, nil
}
