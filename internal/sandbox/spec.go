package sandbox

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/belljar/belljar"
)

// Workspace is the directory a run may write, as the program sees it. It is also
// its working directory and HOME.
const Workspace = "/workspace"

// Spec describes one process to run in a sandbox.
type Spec struct {
	// Argv and Env of the program. Argv[0] is an absolute path inside the sandbox.
	// Env is the whole environment; nothing is inherited.
	Argv []string
	Env  []string

	// Files are written into the workspace before the program starts. Their names
	// are relative to it and were checked by the caller; they are checked again
	// here, because a bad name would be written by our own hand.
	Files []File
	// Assets are read-only files outside the workspace. Their names are absolute
	// and beneath [AssetRoot].
	Assets []File
	// Toolchain are host folders bound read-only at the same path.
	Toolchain []string

	Stdin []byte
	// Bridge becomes descriptor 3 of the program; nil: it gets none. Run closes it
	// once the program holds it.
	Bridge *os.File
	// Stdout and Stderr get the raw bytes as they are read, each from one
	// goroutine at a time. They must not block for long: the program waits.
	Stdout, Stderr io.Writer

	Limits belljar.Limits
	// Minimum is the weakest level that is acceptable; below it Run refuses.
	Minimum belljar.Level
}

// AssetRoot is the folder under which assets appear inside the sandbox.
const AssetRoot = "/opt/belljar"

// File is one file to be made inside the sandbox.
type File struct {
	Name string
	Data []byte
	Mode uint32 // permission bits; 0 means 0644 (0444 for assets)
}

// Cause says who ended the program.
type Cause uint8

const (
	CauseNone    Cause = iota // it came to its own end, by exit or by a signal
	CauseTimeout              // our wall clock
	CauseMemory               // the memory limit
	CauseOutput               // the output limit
	CauseCancel               // the context
)

// Exit is how the program ended and what protected it.
type Exit struct {
	Cause     Cause
	Wait      syscall.WaitStatus // of the program itself
	Usage     belljar.Usage
	Isolation belljar.Isolation
	Denials   []belljar.Denial
	// Faults are the minor page faults of the program, of its children that it
	// waited for, and of setting the sandbox up: a measure of cost without noise.
	Faults int64
	Start  time.Duration // from the call of Run until the program's first instruction
}
