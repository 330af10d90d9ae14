package belljar

import "time"

// Record is one entry of the audit journal.
type Record struct {
	Seq     int64     `json:"seq"` // given by the journal
	Time    time.Time `json:"time"`
	Run     string    `json:"run"`     // id of the run it belongs to
	Session string    `json:"session"` // "ptc" when the caller named none
	Caller  string    `json:"caller"`
	// Event is "run" or "call".
	Event string `json:"event"`
	// Name is "execute_code" or "run_snippet" for a run, "ptc:<tool>" for a bridged call.
	Name string `json:"name"`
	// Args are the arguments (for a run: language, source hash, limits), redacted, as JSON.
	Args string `json:"args"`
	// Outcome is the run's status, or for a call: ok, error, denied, cut_off.
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"` // of the refusal or denial
	// Summary is the first 200 characters of the answer, redacted.
	Summary    string  `json:"summary"`
	DurationMS float64 `json:"duration_ms"`
	OK         bool    `json:"ok"`
}

// Event is one message on the live stream of a run.
type Event struct {
	Run    string    `json:"run"`
	Time   time.Time `json:"time"`
	Type   string    `json:"type"` // state, stdout, stderr, call
	State  State     `json:"state,omitempty"`
	Data   []byte    `json:"data,omitempty"` // raw bytes of a stream
	Call   *ToolCall `json:"call,omitempty"`
	Result *Result   `json:"result,omitempty"`
}

// State is where a run is that has not ended.
type State string

const (
	StateQueued            State = "queued"
	StateRunning           State = "running"
	StateAwaitingConsent   State = "awaiting_consent"
	StateToolCallsRequired State = "tool_calls_required"
)
