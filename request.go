package belljar

// Kind says which of the two calls a run is.
type Kind string

const (
	// KindScript is source that may call tools (execute_code).
	KindScript Kind = "script"
	// KindSnippet is a self-contained program (run_snippet).
	KindSnippet Kind = "snippet"
)

// Request asks for one run. Its JSON form is the request body of every surface;
// fields are only ever added.
type Request struct {
	Kind   Kind   `json:"kind,omitempty"`
	Lang   string `json:"lang,omitempty"` // name or alias; default python for scripts
	Source string `json:"source"`
	// Name is the file name the source gets in the workspace, and so the name
	// that tracebacks show. Default: the language's own (main.py).
	Name  string            `json:"name,omitempty"`
	Stdin string            `json:"stdin,omitempty"`
	Args  []string          `json:"args,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Files []File            `json:"files,omitempty"`

	Limits    LimitsRequest `json:"limits,omitzero"`
	Isolation Level         `json:"isolation,omitempty"` // the minimum; below it the run is refused
	Network   string        `json:"network,omitempty"`   // only "none"
	Fresh     bool          `json:"fresh,omitempty"`     // never use a warm sandbox

	// Tools replaces the curated default set when it is not nil. Fence narrows
	// what this turn may call: nil means no fence, empty means no tool at all.
	Tools []string `json:"tools,omitzero"`
	Fence []string `json:"fence,omitzero"`

	// Session attributes the run in the journal; it opens nothing by itself.
	Session string `json:"session,omitempty"`
	// Caller is who asked, as the surface knows it ("cli", "mcp:claude-code").
	// It is never read from a request's body.
	Caller string `json:"-"`
}

// File is one input file of a request. Name is relative to the workspace, with
// forward slashes.
type File struct {
	Name     string `json:"name"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty"` // "utf8" (default) or "base64"
}

// LimitsRequest asks for limits; nil leaves the default. A value above the
// configured ceiling is brought down to it, zero and negative ones are refused.
type LimitsRequest struct {
	TimeoutMS   *int64 `json:"timeout_ms,omitempty"`
	MemoryBytes *int64 `json:"memory_bytes,omitempty"`
	Processes   *int64 `json:"processes,omitempty"`
	DiskBytes   *int64 `json:"disk_bytes,omitempty"`
	OutputBytes *int64 `json:"output_bytes,omitempty"`
}

// Limits are the limits as applied. Sizes in bytes, time in milliseconds.
type Limits struct {
	TimeoutMS   int64 `json:"timeout_ms"`
	MemoryBytes int64 `json:"memory_bytes"`
	Processes   int64 `json:"processes"`
	DiskBytes   int64 `json:"disk_bytes"`
	Inodes      int64 `json:"inodes"`
	OutputBytes int64 `json:"output_bytes"` // both streams together
	OpenFiles   int64 `json:"open_files"`
}
