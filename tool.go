package belljar

import "encoding/json"

// Tool is one thing a script can call, as its toolset describes it.
type Tool struct {
	Name        string `json:"name"` // an identifier; the name scripts use
	Description string `json:"description"`
	// InputSchema and OutputSchema are JSON Schemas; OutputSchema may be nil.
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Source       string          `json:"source"` // "builtin", the upstream's name, or "go"
	// Forms are all names by which policy knows the tool: as scripts call it, as
	// its source calls it, and prefixed with its source.
	Forms    []string `json:"forms,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"`
}

// ValueKind says how the bytes of a [Value] are to be read.
type ValueKind uint8

const (
	ValueText  ValueKind = iota // UTF-8 text: a string in the script
	ValueJSON                   // a JSON document: a value in the script
	ValueBytes                  // an image or blob: bytes in the script
)

// Value is what a tool answered, already unwrapped. Data is handed to the script
// as it is and never escaped inside another document.
type Value struct {
	Kind      ValueKind
	Data      []byte
	MediaType string // for ValueBytes
}

// ToolError is a tool call that failed, as the script is told. Denied is true
// when policy refused the call, and then Code is its stable code.
type ToolError struct {
	Tool   string
	Denied bool
	Code   string // unknown_tool, fence, disabled, never_bridged, rate_limit, budget, failed, timeout, bad_frame ...
	Reason string
}

func (e *ToolError) Error() string { return e.Reason }
