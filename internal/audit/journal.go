package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belljar/belljar"
)

const (
	queueLength = 1024 // records that wait for the writer before Append blocks
	maxBatch    = 512  // records of one commit
	maxHeld     = 4096 // records that could not be written and are tried again
)

// ErrClosed is what Append and Flush return after Close.
var ErrClosed = errors.New("the audit journal is closed")

// Journal is an open audit journal. Its methods may be called by many goroutines.
type Journal struct {
	path     string
	redactor *Redactor
	retain   time.Duration

	queue  chan item
	urgent chan struct{} // ends the writer's wait for company; holds one
	ready  chan struct{} // closed when the file is open, or could not be opened
	done   chan struct{} // closed when the writer has ended

	// openErr is why the file could not be opened. It is written before ready is
	// closed and read after.
	openErr error
	// failing is why the last commit did not succeed; nil when it did.
	failing atomic.Pointer[belljar.Refusal]
	// foldErr is why the log could not be folded into the file; doctor shows it.
	foldErr atomic.Pointer[belljar.Refusal]
	// held counts records that wait for another try.
	held atomic.Int64

	// mu guards closed. Senders hold it for reading, so that Close cannot close
	// the queue under them.
	mu     sync.RWMutex
	closed bool
	lost   error // why records were lost; written before done is closed
}

// item is one thing for the writer: a record, or a question whether all records
// before it are committed.
type item struct {
	record belljar.Record
	ack    chan error // buffered; nil for a record
}

// Open makes a journal and starts opening its file. An error is about the
// configuration (*belljar.Refusal); what is wrong with the file is told by Ready.
func Open(cfg Config) (*Journal, error) {
	redactor, err := cfg.Redactor()
	if err != nil {
		return nil, err
	}
	retain, err := cfg.retain()
	if err != nil {
		return nil, err
	}
	path, err := cfg.file()
	if err != nil {
		return nil, err
	}
	j := &Journal{
		path: path, redactor: redactor, retain: retain,
		queue:  make(chan item, queueLength),
		urgent: make(chan struct{}, 1),
		ready:  make(chan struct{}),
		done:   make(chan struct{}),
	}
	go j.run()
	return j, nil
}

// file is where the journal is.
func (c Config) file() (string, error) {
	if c.Path != "" {
		path, err := filepath.Abs(c.Path)
		if err != nil || strings.ContainsRune(path, 0) {
			return "", belljar.Refuse(belljar.CodeBadConfig, "Set audit.path to an absolute path.", "audit.path: %q cannot be used.", c.Path)
		}
		return path, nil
	}
	dir, err := StateDir()
	if err != nil {
		return "", belljar.Refuse(belljar.CodeBadConfig, "Set audit.path to an absolute path, or BELLJAR_STATE_DIR to a folder.",
			"There is no place for the audit journal: %v.", err)
	}
	return filepath.Join(dir, "journal.db"), nil
}

// Path is the absolute path of the journal.
func (j *Journal) Path() string { return j.path }

// Ready waits until records can be taken and returns nil, or why they cannot: a
// *belljar.Refusal (audit_unavailable) with path, cause and remedy. When the last
// commit failed it tries again first.
func (j *Journal) Ready(ctx context.Context) error {
	select {
	case <-j.ready:
	case <-ctx.Done():
		return fmt.Errorf("wait for the audit journal: %w", context.Cause(ctx))
	}
	if j.openErr != nil {
		return j.openErr
	}
	if j.failing.Load() != nil {
		return j.Flush(ctx)
	}
	return nil
}

// Append redacts a record and queues it; Seq is ignored, a zero Time is now. It
// blocks while the queue is full. nil means queued: Flush says when it is safe.
func (j *Journal) Append(ctx context.Context, r belljar.Record) error {
	select {
	case <-j.ready:
		if j.openErr != nil {
			return j.openErr
		}
	default: // not open yet: the queue takes what comes meanwhile
	}
	if why := j.failing.Load(); why != nil && j.held.Load() >= maxHeld {
		return why
	}
	if r.Event == "" || r.Name == "" || r.Outcome == "" {
		return fmt.Errorf("an audit record needs event, name and outcome, got %q, %q and %q", r.Event, r.Name, r.Outcome)
	}
	return j.send(ctx, item{record: j.redact(r)})
}

// Flush returns nil when every record appended before is committed, or why that
// cannot be.
func (j *Journal) Flush(ctx context.Context) error {
	ack := make(chan error, 1)
	if err := j.send(ctx, item{ack: ack}); err != nil {
		return err
	}
	select {
	case err := <-ack:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the audit journal: %w", context.Cause(ctx))
	}
}

func (j *Journal) send(ctx context.Context, it item) error {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return ErrClosed
	}
	select {
	case j.queue <- it:
	case <-ctx.Done():
		return fmt.Errorf("queue for the audit journal: %w", context.Cause(ctx))
	}
	if it.ack != nil || len(j.queue) > queueLength/2 {
		j.hurry()
	}
	return nil
}

func (j *Journal) hurry() {
	select {
	case j.urgent <- struct{}{}:
	default:
	}
}

// Close commits what is queued and closes the file. The error says how many
// records could not be written. Calling it again returns the same.
func (j *Journal) Close() error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.queue)
		j.hurry()
	}
	j.mu.Unlock()
	<-j.done
	return j.lost
}

// redact makes a record fit to be kept. Nothing in it may be what the schema
// refuses: one such record would hold up all that follow.
func (j *Journal) redact(r belljar.Record) belljar.Record {
	if r.Time.IsZero() || r.Time.Year() < 1970 || r.Time.Year() > 2200 { // what nanoseconds can say
		r.Time = time.Now()
	}
	if !(r.DurationMS >= 0 && r.DurationMS <= math.MaxFloat64) {
		r.DurationMS = 0
	}
	r.Args = j.redactor.Args(r.Args)
	r.Summary = j.redactor.Summary(r.Summary)
	for _, field := range []*string{&r.Run, &r.Session, &r.Caller, &r.Event, &r.Outcome, &r.Code} {
		*field = plain(*field)
	}
	// What a script calls a tool is what it chose: a name that would be shown as
	// another one is shown in quotes.
	if name := plain(r.Name); name == r.Name || len(r.Name) > maxField {
		r.Name = name
	} else {
		r.Name = plain(strconv.QuoteToGraphic(r.Name))
	}
	return r
}

// plain bounds a text that is a name and not content. Most are short and clean.
func plain(s string) string {
	if len(s) > 8*maxField {
		s = s[:8*maxField]
	}
	return firstRunes(oneLine(s), maxField)
}
