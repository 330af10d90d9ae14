package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/belljar/belljar"
)

// DefaultLimit is how many records List gives when the filter does not say.
const DefaultLimit = 50

// Filter chooses records; empty fields choose all.
type Filter struct {
	Run     string
	Session string
	Name    string // as recorded, or a tool's name without "ptc:"
	Outcome string
	Since   time.Time // records of this moment or later
	Limit   int       // 0: DefaultLimit
}

// DamageError says that some rows do not hold what the journal writes. The rows
// are still listed, with what could be read of them.
type DamageError struct {
	Path string
	Seqs []int64
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the audit journal %s holds %d damaged records (first: %d)", e.Path, len(e.Seqs), e.Seqs[0])
}

// List returns records, newest first. With a *DamageError, and when the file can
// only be read in part, the records that could be read come with the error. It
// reads what is committed: Flush before, to see one's own last records.
func (j *Journal) List(ctx context.Context, f Filter) ([]belljar.Record, error) {
	if f.Limit < 0 {
		return nil, belljar.Refuse(belljar.CodeBadRequest, "Leave it out for 50.", "The limit %d is negative.", f.Limit)
	}
	if f.Limit == 0 {
		f.Limit = DefaultLimit
	}
	var out []belljar.Record
	err := j.read(ctx, func(db *database) error {
		var err error
		out, err = j.list(ctx, db, f)
		return err
	})
	return out, err
}

// read gives f a connection of its own, interrupted when ctx ends.
func (j *Journal) read(ctx context.Context, f func(*database) error) error {
	select {
	case <-j.ready:
	case <-ctx.Done():
		return fmt.Errorf("wait for the audit journal: %w", context.Cause(ctx))
	}
	if j.openErr != nil {
		return j.openErr
	}
	path, err := prepare(j.path)
	if err != nil {
		return j.refusal(err)
	}
	db, err := connect(path)
	if err != nil {
		return j.refusal(err)
	}
	defer db.close()
	if err := db.exec("PRAGMA query_only=1"); err != nil {
		return j.readFault(err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		db.interrupt()
	})
	defer func() {
		if !stop() {
			<-ended // or it would touch a closed connection
		}
	}()
	if err := f(db); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("read the audit journal: %w", context.Cause(ctx))
		}
		return j.readFault(err)
	}
	return nil
}

func (j *Journal) readFault(err error) error {
	var damage *DamageError
	if errors.As(err, &damage) {
		return err
	}
	return fmt.Errorf("read the audit journal %s: %w", j.path, err)
}

func (j *Journal) list(ctx context.Context, db *database, f Filter) ([]belljar.Record, error) {
	where, args := f.where()
	s, err := db.prepare("SELECT seq, " + columns + " FROM records" + where + " ORDER BY seq DESC LIMIT ?")
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.bind(append(args, int64(f.Limit))...); err != nil {
		return nil, err
	}
	var out []belljar.Record
	var damaged []int64
	for ctx.Err() == nil {
		row, err := s.step()
		if err != nil {
			return out, err
		}
		if !row {
			break
		}
		r, sound := record(s)
		if !sound {
			damaged = append(damaged, r.Seq)
		}
		out = append(out, r)
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if damaged != nil {
		return out, &DamageError{j.path, damaged}
	}
	return out, nil
}

func (f Filter) where() (string, []any) {
	var terms []string
	var args []any
	add := func(term string, values ...any) {
		terms = append(terms, term)
		args = append(args, values...)
	}
	if f.Run != "" {
		add("run = ?", f.Run)
	}
	if f.Session != "" {
		add("session = ?", f.Session)
	}
	if f.Name != "" {
		add("name IN (?, ?)", f.Name, "ptc:"+f.Name)
	}
	if f.Outcome != "" {
		add("outcome = ?", f.Outcome)
	}
	if !f.Since.IsZero() {
		add("time >= ?", f.Since.UnixNano())
	}
	if terms == nil {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// record reads the row at which s stands, and whether it holds what the journal
// writes: every type as declared, no name empty, a possible duration.
func record(s *statement) (belljar.Record, bool) {
	sound := s.isNumber(0) && s.isNumber(1) && s.isNumber(11) && s.isNumber(12)
	for col := int32(2); col <= 10; col++ {
		sound = sound && s.isText(col)
	}
	r := belljar.Record{
		Seq: s.int(0), Time: time.Unix(0, s.int(1)).UTC(),
		Run: s.text(2), Session: s.text(3), Caller: s.text(4), Event: s.text(5), Name: s.text(6),
		Args: s.text(7), Outcome: s.text(8), Code: s.text(9), Summary: s.text(10),
		DurationMS: s.float(11), OK: s.int(12) != 0,
	}
	sound = sound && r.Event != "" && r.Name != "" && r.Outcome != "" &&
		r.DurationMS >= 0 && r.DurationMS <= math.MaxFloat64 && s.int(12)>>1 == 0
	return r, sound
}
