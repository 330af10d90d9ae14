package audit

import (
	"errors"
	"fmt"
	"os"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/belljar/belljar"
)

// writer is the state of the one goroutine that writes.
type writer struct {
	j     *Journal
	store *store // nil: to be opened
	path  string // with links resolved
	held  []belljar.Record
	timer *time.Timer // of wait; nil until first used
}

// run opens the file and writes until the queue is closed.
func (j *Journal) run() {
	defer close(j.done)
	w := &writer{j: j}
	defer w.close()
	if err := w.open(); err != nil {
		j.openErr = j.refusal(err)
		close(j.ready)
		w.refuseAll()
		return
	}
	close(j.ready)
	for it := range j.queue {
		w.serve(it)
	}
	if len(w.held) > 0 && w.commit() != nil {
		j.lost = fmt.Errorf("%d audit records could not be written: %w", len(w.held), j.failing.Load())
	}
}

func (w *writer) open() error {
	path, err := prepare(w.j.path)
	if err != nil {
		return err
	}
	w.path = path
	w.store, err = openStore(path)
	return err
}

// refuseAll answers whoever still sends, until the journal is closed.
func (w *writer) refuseAll() {
	lost := 0
	for it := range w.j.queue {
		if it.ack != nil {
			it.ack <- w.j.openErr
		} else {
			lost++
		}
	}
	if lost > 0 {
		w.j.lost = fmt.Errorf("%d audit records could not be written: %w", lost, w.j.openErr)
	}
}

// linger is how long the writer waits for company for a record that nobody has
// asked to be safe yet: one commit for many records costs hardly more than one for
// one. Meanwhile it sleeps and no record wakes it, which would take a processor from
// the run that makes them. A Flush, a filling queue and Close end the wait.
const linger = 5 * time.Millisecond

// serve takes an item and what comes soon after it, commits all records in one
// transaction, and answers.
func (w *writer) serve(it item) {
	var acks []chan error
	waited := false
	for taken := 1; ; taken++ {
		if it.ack != nil {
			acks = append(acks, it.ack)
		} else {
			w.held = append(w.held, it.record)
		}
		if taken == maxBatch {
			break
		}
		var more bool
		if it, more = w.next(); !more && len(acks) == 0 && !waited {
			waited = true
			w.wait()
			it, more = w.next()
		}
		if !more {
			break
		}
	}
	err := w.commit()
	for _, ack := range acks {
		ack <- err
	}
	if err == nil {
		w.fold()
	}
}

// next takes a further item if one is there.
func (w *writer) next() (it item, more bool) {
	select {
	case it, more = <-w.j.queue:
	default:
	}
	return it, more
}

func (w *writer) wait() {
	if w.timer == nil {
		w.timer = time.NewTimer(linger)
	} else {
		w.timer.Reset(linger)
	}
	select {
	case <-w.timer.C:
	case <-w.j.urgent:
		w.timer.Stop()
	}
}

// fold keeps the log short, after everybody has an answer. What was committed is
// safe whether or not it succeeds; when it does not, a full disk for instance, the
// commits that follow will tell.
func (w *writer) fold() {
	if err := w.store.fold(w.path); err != nil {
		w.j.foldErr.Store(w.j.refusal(err))
		return
	}
	w.j.foldErr.Store(nil)
}

// commit writes what is held. After a failure it is still held, and the next item
// makes another try.
func (w *writer) commit() error {
	if len(w.held) == 0 {
		return nil
	}
	err := w.reopen()
	if err == nil {
		err = w.store.write(w.held, w.j.retain)
	}
	if err != nil {
		why := w.j.refusal(err)
		w.j.failing.Store(why)
		w.j.held.Store(int64(len(w.held)))
		return why
	}
	clear(w.held)
	w.held = w.held[:0]
	if w.j.failing.Load() != nil {
		w.j.held.Store(0)
		w.j.failing.Store(nil)
	}
	return nil
}

// reopen opens the file again when somebody moved or deleted it: what is written
// to a file without a name is not there when asked for.
func (w *writer) reopen() error {
	if w.store != nil {
		if info, err := os.Lstat(w.path); err == nil && os.SameFile(info, w.store.file) {
			return nil
		}
		w.close()
	}
	return w.open()
}

func (w *writer) close() {
	if w.store != nil {
		w.store.close()
		w.store = nil
	}
}

// refusal says why the journal cannot be used, in words for the operator.
func (j *Journal) refusal(err error) *belljar.Refusal {
	var already *belljar.Refusal
	if errors.As(err, &already) {
		return already
	}
	cause, remedy := explain(err)
	return belljar.Refuse(belljar.CodeAudit, remedy, "The audit journal %s cannot be written: %s.", j.path, cause)
}

const (
	remedyMove  = "Move the file away (with its -wal and -shm) and start again, or set audit.path to another file; `sqlite3 FILE .recover` may save its records."
	remedyPlace = "Make the folder writable, or set audit.path to a file in a folder that is."
)

func explain(err error) (cause, remedy string) {
	var place *placeError
	if errors.As(err, &place) {
		return place.cause, place.remedy
	}
	if errors.Is(err, errForeign) {
		return err.Error(), "Set audit.path to another file."
	}
	var e *dbError
	if !errors.As(err, &e) {
		return err.Error(), remedyPlace
	}
	switch e.primary() {
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return "the file is damaged (" + e.msg + ")", remedyMove
	case sqlite3.SQLITE_FULL:
		return "the disk is full (" + e.msg + ")", "Free some space, or set audit.path to a file on another disk."
	case sqlite3.SQLITE_BUSY:
		return fmt.Sprintf("another process holds its lock for over %d seconds (%s)", busyWait/time.Second, e.msg),
			"Find the process that has the file open (`fuser -v FILE`) and end it."
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return e.msg, remedyPlace
	case sqlite3.SQLITE_ERROR:
		return "its tables are not as expected (" + e.msg + ")", remedyMove
	default:
		return e.msg, remedyPlace
	}
}
