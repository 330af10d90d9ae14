package audit

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file is all of SQLite's C interface that the journal uses. database/sql
// hides two switches which matter here: NO_CKPT_ON_CLOSE, without which each
// `belljar run` would wait for the disk three times at its end, and OPEN_NOFOLLOW.

// database is one connection. It belongs to one goroutine at a time, except for
// interrupt.
type database struct {
	tls *libc.TLS
	h   uintptr
}

// dbError is an answer of SQLite other than success.
type dbError struct {
	code int32 // extended result code
	msg  string
}

func (e *dbError) Error() string { return e.msg }

// primary is the result code without its extension.
func (e *dbError) primary() int32 { return e.code & 0xff }

// pointee reads the pointer that SQLite wrote at p, which is C memory.
func pointee(p uintptr) uintptr { return **(**uintptr)(unsafe.Pointer(&p)) }

const sqliteTransient = ^uintptr(0) // SQLite copies what it is given before it returns

// openDatabase opens an existing file. No part of path may be a link.
func openDatabase(path string) (*database, error) {
	d := &database{tls: libc.NewTLS()}
	name, err := libc.CString(path)
	if err != nil {
		d.tls.Close()
		return nil, fmt.Errorf("no memory for SQLite: %w", err)
	}
	defer libc.Xfree(d.tls, name)
	out := d.tls.Alloc(int(unsafe.Sizeof(uintptr(0))))
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_NOFOLLOW |
		sqlite3.SQLITE_OPEN_NOMUTEX | sqlite3.SQLITE_OPEN_EXRESCODE
	rc := sqlite3.Xsqlite3_open_v2(d.tls, name, out, flags, 0)
	d.h = pointee(out)
	d.tls.Free(int(unsafe.Sizeof(uintptr(0))))
	if rc != sqlite3.SQLITE_OK {
		err := d.fail(rc)
		d.close()
		return nil, err
	}
	return d, nil
}

// close gives the connection back. Calling it again does nothing.
func (d *database) close() {
	if d.tls == nil {
		return
	}
	if d.h != 0 {
		sqlite3.Xsqlite3_close_v2(d.tls, d.h)
	}
	d.tls.Close()
	d.h, d.tls = 0, nil
}

func (d *database) fail(rc int32) error {
	var msg string
	if d.h != 0 {
		msg = libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.h))
	} else {
		msg = libc.GoString(sqlite3.Xsqlite3_errstr(d.tls, rc))
	}
	return &dbError{rc, msg}
}

// keepLog leaves the write-ahead log where it is when the last connection closes.
func (d *database) keepLog() error {
	list := libc.NewVaList(int32(1), uintptr(0))
	defer libc.Xfree(d.tls, list)
	if rc := sqlite3.Xsqlite3_db_config(d.tls, d.h, sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, list); rc != sqlite3.SQLITE_OK {
		return d.fail(rc)
	}
	return nil
}

// wait says how long a statement waits for another process's lock.
func (d *database) wait(ms int32) { sqlite3.Xsqlite3_busy_timeout(d.tls, d.h, ms) }

// interrupt makes the statement that runs end soon. Any goroutine may call it
// while the connection is open.
func (d *database) interrupt() {
	tls := libc.NewTLS()
	sqlite3.Xsqlite3_interrupt(tls, d.h)
	tls.Close()
}

// exec runs statements that give no rows, or whose rows do not matter.
func (d *database) exec(sql string) error {
	text, err := libc.CString(sql)
	if err != nil {
		return fmt.Errorf("no memory for SQLite: %w", err)
	}
	defer libc.Xfree(d.tls, text)
	if rc := sqlite3.Xsqlite3_exec(d.tls, d.h, text, 0, 0, 0); rc != sqlite3.SQLITE_OK {
		return d.fail(rc)
	}
	return nil
}

// number runs a query that gives one number; 0 when it gives no row.
func (d *database) number(sql string) (int64, error) {
	s, err := d.prepare(sql)
	if err != nil {
		return 0, err
	}
	defer s.close()
	row, err := s.step()
	if err != nil || !row {
		return 0, err
	}
	return s.int(0), nil
}

// statement is a prepared one. Parameters count from 1, columns from 0.
type statement struct {
	d *database
	h uintptr
}

func (d *database) prepare(sql string) (*statement, error) {
	text, err := libc.CString(sql)
	if err != nil {
		return nil, fmt.Errorf("no memory for SQLite: %w", err)
	}
	defer libc.Xfree(d.tls, text)
	out := d.tls.Alloc(int(unsafe.Sizeof(uintptr(0))))
	defer d.tls.Free(int(unsafe.Sizeof(uintptr(0))))
	if rc := sqlite3.Xsqlite3_prepare_v2(d.tls, d.h, text, -1, out, 0); rc != sqlite3.SQLITE_OK {
		return nil, d.fail(rc)
	}
	return &statement{d, pointee(out)}, nil
}

func (s *statement) close() {
	sqlite3.Xsqlite3_finalize(s.d.tls, s.h)
	s.h = 0
}

// bind sets the parameters from the first on. It knows the types that records
// are made of.
func (s *statement) bind(values ...any) error {
	for i, v := range values {
		var rc int32
		switch v := v.(type) {
		case string:
			text, err := libc.CString(v)
			if err != nil {
				return fmt.Errorf("no memory for SQLite: %w", err)
			}
			rc = sqlite3.Xsqlite3_bind_text(s.d.tls, s.h, int32(i+1), text, int32(len(v)), sqliteTransient)
			libc.Xfree(s.d.tls, text)
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(s.d.tls, s.h, int32(i+1), v)
		case float64:
			rc = sqlite3.Xsqlite3_bind_double(s.d.tls, s.h, int32(i+1), v)
		default:
			return fmt.Errorf("bind parameter %d: type %T", i+1, v)
		}
		if rc != sqlite3.SQLITE_OK {
			return s.d.fail(rc)
		}
	}
	return nil
}

// step goes to the next row; false at the end.
func (s *statement) step() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.d.tls, s.h); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.d.fail(rc)
	}
}

// run executes a statement that gives no rows and makes it ready for the next time.
func (s *statement) run(values ...any) error {
	err := s.bind(values...)
	if err == nil {
		_, err = s.step()
	}
	sqlite3.Xsqlite3_reset(s.d.tls, s.h) // repeats the error of step
	return err
}

// isText and isNumber tell what the file holds, which a damaged one may not hold
// to the schema.
func (s *statement) isText(col int32) bool {
	return sqlite3.Xsqlite3_column_type(s.d.tls, s.h, col) == sqlite3.SQLITE_TEXT
}

func (s *statement) isNumber(col int32) bool {
	t := sqlite3.Xsqlite3_column_type(s.d.tls, s.h, col)
	return t == sqlite3.SQLITE_INTEGER || t == sqlite3.SQLITE_FLOAT
}

// text is a column up to its first NUL; no column of the journal holds one.
func (s *statement) text(col int32) string {
	p := sqlite3.Xsqlite3_column_text(s.d.tls, s.h, col)
	if p == 0 {
		return ""
	}
	return libc.GoString(p)
}

func (s *statement) int(col int32) int64 { return sqlite3.Xsqlite3_column_int64(s.d.tls, s.h, col) }

func (s *statement) float(col int32) float64 {
	return sqlite3.Xsqlite3_column_double(s.d.tls, s.h, col)
}
