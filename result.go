package belljar

// Status is how a run ended. The list is closed.
type Status string

const (
	StatusExited      Status = "exited"
	StatusSignalled   Status = "signalled"
	StatusTimedOut    Status = "timed_out"
	StatusOutOfMemory Status = "out_of_memory"
	StatusOutputLimit Status = "output_limit"
	StatusCancelled   Status = "cancelled"
	StatusRefused     Status = "refused"
	StatusFailed      Status = "failed"
)

// Stage is how far a run came.
type Stage string

const (
	StageAdmission Stage = "admission"
	StageScreening Stage = "screening"
	StageToolchain Stage = "toolchain"
	StageCompile   Stage = "compile"
	StageRun       Stage = "run"
)

// Result is the whole answer to a [Request]. Names and meanings are stable;
// fields are only ever added.
type Result struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"` // the program came to its own end, whatever its exit code
	Status Status `json:"status"`
	Stage  Stage  `json:"stage"`
	Kind   Kind   `json:"kind,omitempty"`
	Lang   string `json:"lang"`

	ExitCode   *int    `json:"exit_code"` // 128+signal after a signal; nil when nothing ran
	Signal     *int    `json:"signal"`
	SignalName *string `json:"signal_name"`
	Stdout     string  `json:"stdout"`
	Stderr     string  `json:"stderr"`
	Error      *string `json:"error"` // one sentence a model can act on, when OK is false

	Output    Outputs    `json:"output"`
	Usage     Usage      `json:"usage"`
	Limits    Limits     `json:"limits"`
	Isolation Isolation  `json:"isolation"`
	Denials   []Denial   `json:"denials"`
	Findings  []Finding  `json:"findings"`
	ToolCalls ToolCalls  `json:"tool_calls"`
	Artifacts []Artifact `json:"artifacts"`
	Timing    Timing     `json:"timing"`

	Refusal *Refusal `json:"refusal,omitempty"`
	Fault   string   `json:"fault,omitempty"` // id of the fault in the log
	// Unrecorded says why the journal has no record of this run. Only possible
	// where the operator chose audit.required = false.
	Unrecorded string `json:"unrecorded,omitempty"`
}

// Outputs tells the true size of each stream.
type Outputs struct {
	Stdout Output `json:"stdout"`
	Stderr Output `json:"stderr"`
}

// Output describes one stream. Bytes counts what the program wrote, Truncated
// says that Result.Stdout or Stderr holds only its first and last part.
type Output struct {
	Bytes     int64   `json:"bytes"`
	Truncated bool    `json:"truncated"`
	Artifact  *string `json:"artifact"`
}

// Usage is what the run used, all its processes together. A negative number
// means that it could not be measured at this isolation level.
type Usage struct {
	WallMS          float64 `json:"wall_ms"`
	CPUMS           float64 `json:"cpu_ms"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"`
	Processes       int64   `json:"processes"` // the most at one time, -1 when unknown
}

// Level is an isolation level, weakest first: process, landlock, namespaces, gvisor.
type Level string

const (
	LevelProcess    Level = "process"
	LevelLandlock   Level = "landlock"
	LevelNamespaces Level = "namespaces"
	LevelGVisor     Level = "gvisor"
)

// Levels lists the isolation levels, weakest first.
var Levels = []Level{LevelProcess, LevelLandlock, LevelNamespaces, LevelGVisor}

// Rank orders levels, weakest 0; -1 for a name that is none.
func (l Level) Rank() int {
	for i, x := range Levels {
		if x == l {
			return i
		}
	}
	return -1
}

// Isolation says what protected the run. A protection is listed only after it
// was applied.
type Isolation struct {
	Level          Level     `json:"level"`
	Protections    []string  `json:"protections"`
	Missing        []Missing `json:"missing"`
	Network        string    `json:"network"`
	SeccompProfile string    `json:"seccomp_profile,omitempty"`
}

// Missing is a protection that did not apply, and why.
type Missing struct {
	Protection string `json:"protection"`
	Reason     string `json:"reason"`
}

// Denial is one thing the sandbox refused, in words.
type Denial struct {
	Kind    string `json:"kind"` // syscall, path, network, limit
	What    string `json:"what"`
	Explain string `json:"explain"`
	Likely  bool   `json:"likely,omitempty"` // inferred, not observed
}

// Finding is what screening noticed: a tripwire, never a boundary.
type Finding struct {
	Rule   string `json:"rule"`
	Line   int    `json:"line"`
	Advice string `json:"advice"`
}

// ToolCalls sums up the bridged calls of a run.
type ToolCalls struct {
	Count        int64      `json:"count"`  // every call answered, unknown and denied ones too
	Denied       int64      `json:"denied"` // refused by policy
	BytesKeptOut int64      `json:"bytes_kept_out"`
	Calls        []ToolCall `json:"calls"` // the first 100
}

// ToolCall is one bridged call in the Result.
type ToolCall struct {
	Tool   string  `json:"tool"`
	OK     bool    `json:"ok"`
	MS     float64 `json:"ms"`
	Bytes  int64   `json:"bytes"`
	Denied bool    `json:"denied,omitempty"`
}

// Artifact is a file the run left that was kept.
type Artifact struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256"`
}

// Timing splits the wall time of a request, in milliseconds.
type Timing struct {
	AdmissionMS float64 `json:"admission_ms"`
	CompileMS   float64 `json:"compile_ms"`
	StartMS     float64 `json:"start_ms"` // until the program's own code could begin
	RunMS       float64 `json:"run_ms"`
}
