package belljar

// CheckState is the verdict of one line of doctor.
type CheckState string

const (
	CheckOK   CheckState = "ok"
	CheckWarn CheckState = "warn" // works, with less
	CheckFail CheckState = "fail" // something asked for cannot work
)

// Check is one line of `belljar doctor`. The package that owns a thing checks it.
type Check struct {
	Name    string     `json:"name"`
	State   CheckState `json:"state"`
	Meaning string     `json:"meaning"`          // what was found, in a sentence
	Remedy  string     `json:"remedy,omitempty"` // what to do about it
}
