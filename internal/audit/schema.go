package audit

import (
	"errors"
	"fmt"
	"os"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/belljar/belljar"
)

// version is what user_version says about a file this code wrote. A change of the
// schema raises it and adds a step to migrate; a hash chain, for instance, is two
// more columns. Rows are only ever inserted, and AUTOINCREMENT never gives a
// number twice, so a number that is missing in the middle was taken away.
const (
	version       = 1
	applicationID = 0x426a4a31 // "BjJ1": tells a journal from another program's database
)

const schema = `
CREATE TABLE records (
	seq         INTEGER PRIMARY KEY AUTOINCREMENT,
	time        INTEGER NOT NULL, -- nanoseconds since 1970, UTC
	run         TEXT NOT NULL,
	session     TEXT NOT NULL,
	caller      TEXT NOT NULL,
	event       TEXT NOT NULL,
	name        TEXT NOT NULL,
	args        TEXT NOT NULL,
	outcome     TEXT NOT NULL,
	code        TEXT NOT NULL,
	summary     TEXT NOT NULL,
	duration_ms REAL NOT NULL,
	ok          INTEGER NOT NULL
) STRICT;
CREATE INDEX records_run ON records(run);`

const columns = "time, run, session, caller, event, name, args, outcome, code, summary, duration_ms, ok"

// busyWait is how long a statement waits for another process that writes. A
// commit takes a millisecond; who holds the file this long is stuck.
const busyWait = 20 * time.Second

// store is the writer's connection with its prepared statement.
type store struct {
	db     *database
	insert *statement
	file   os.FileInfo // the file as opened, to notice when it is taken away
	pruned time.Time   // when old records were last looked for
}

// openStore opens the journal at path, which prepare has made, and brings its
// schema up to date.
func openStore(path string) (*store, error) {
	db, err := connect(path)
	if err != nil {
		return nil, err
	}
	s := &store{db: db}
	if err := s.setUp(path); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect opens a connection with the settings that readers and writers share.
func connect(path string) (*database, error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	db.wait(int32(busyWait / time.Millisecond))
	if err := db.keepLog(); err != nil {
		db.close()
		return nil, err
	}
	// 256 KiB of cache: records are appended, nothing is read twice.
	if err := db.exec("PRAGMA cache_size=-256"); err != nil {
		db.close()
		return nil, err
	}
	return db, nil
}

func (s *store) setUp(path string) error {
	// NORMAL waits for the disk only when the log is folded into the file, which
	// fold does: what was committed survives the death of the process, not the loss
	// of power.
	if err := retryBusy(func() error { return s.db.exec("PRAGMA journal_mode=WAL") }); err != nil {
		return err
	}
	if err := s.db.exec("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0"); err != nil {
		return err
	}
	if err := retryBusy(s.migrate); err != nil {
		return err
	}
	var err error
	if s.insert, err = s.db.prepare("INSERT INTO records (" + columns + ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"); err != nil {
		return err
	}
	s.file, err = os.Lstat(path)
	return err
}

// migrate makes the schema of an empty file. A file that fits costs one read.
func (s *store) migrate() error {
	found, err := s.db.number("PRAGMA user_version")
	if err != nil {
		return err
	}
	app, err := s.db.number("PRAGMA application_id")
	if err != nil {
		return err
	}
	switch {
	case found == version && app == applicationID:
		return nil
	case found > version && app == applicationID:
		return fmt.Errorf("it was written by a newer version (format %d, this one knows %d)", found, version)
	case found != 0 || app != 0:
		return errForeign
	}
	if err := s.db.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err = s.create()
	if err == nil {
		err = s.db.exec("COMMIT")
	}
	if err != nil {
		return errors.Join(err, s.rollback())
	}
	return nil
}

var errForeign = errors.New("it is a database of another program")

// create runs inside a transaction, since another process may be as far.
func (s *store) create() error {
	found, err := s.db.number("PRAGMA user_version")
	if err != nil || found == version {
		return err
	}
	tables, err := s.db.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	if tables != 0 {
		return errForeign
	}
	return s.db.exec(fmt.Sprintf("%s PRAGMA application_id=%d; PRAGMA user_version=%d;", schema, applicationID, version))
}

// rollback ends a transaction if there still is one.
func (s *store) rollback() error {
	if sqlite3.Xsqlite3_get_autocommit(s.db.tls, s.db.h) != 0 {
		return nil
	}
	return s.db.exec("ROLLBACK")
}

// retryBusy repeats what met another process at a moment where SQLite does not
// wait by itself: turning the log on, and raising a read to a write.
func retryBusy(f func() error) error {
	for until := time.Now().Add(busyWait); ; time.Sleep(2 * time.Millisecond) {
		err := f()
		var e *dbError
		if errors.As(err, &e) && e.primary() == sqlite3.SQLITE_BUSY && time.Now().Before(until) {
			continue
		}
		return err
	}
}

// write commits the records in one transaction, all or none.
func (s *store) write(records []belljar.Record, retain time.Duration) error {
	if err := retryBusy(func() error { return s.db.exec("BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	err := s.prune(retain)
	for i := 0; i < len(records) && err == nil; i++ {
		r := &records[i]
		var ok int64
		if r.OK {
			ok = 1
		}
		err = s.insert.run(r.Time.UnixNano(), r.Run, r.Session, r.Caller, r.Event, r.Name, r.Args,
			r.Outcome, r.Code, r.Summary, r.DurationMS, ok)
	}
	if err == nil {
		err = s.db.exec("COMMIT")
	}
	if err != nil {
		return errors.Join(err, s.rollback())
	}
	return nil
}

// maxLog is how long the log may grow. A start that finds no other process reads
// all of it, so a longer one would make each `belljar run` slower.
const maxLog = 1 << 20

// fold moves the log into the file when it is long, and empties it. SQLite's own
// way to do that never empties the log of processes that commit only once. A
// reader that is in the way is not waited for: the next commit tries again.
func (s *store) fold(path string) error {
	info, err := os.Stat(path + "-wal")
	if err != nil || info.Size() < maxLog {
		return err
	}
	s.db.wait(0)
	defer s.db.wait(int32(busyWait / time.Millisecond))
	return s.db.exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

// pruneStep bounds what one commit takes away, and so how long it lasts.
const pruneStep = 500

// prune takes away records older than retain, oldest first. It rides on a commit
// at most once an hour, or at each one while there is more to do, and needs no
// timer of its own.
func (s *store) prune(retain time.Duration) error {
	now := time.Now()
	if retain <= 0 || now.Sub(s.pruned) < time.Hour {
		return nil
	}
	gone, err := s.db.prepare("DELETE FROM records WHERE seq IN (SELECT seq FROM" +
		" (SELECT seq, time FROM records ORDER BY seq LIMIT ?) WHERE time < ?)")
	if err != nil {
		return err
	}
	defer gone.close()
	if err := gone.run(int64(pruneStep), now.Add(-retain).UnixNano()); err != nil {
		return err
	}
	if sqlite3.Xsqlite3_changes(s.db.tls, s.db.h) < pruneStep {
		s.pruned = now
	}
	return nil
}

func (s *store) close() {
	if s.insert != nil {
		s.insert.close()
	}
	s.db.close()
}
