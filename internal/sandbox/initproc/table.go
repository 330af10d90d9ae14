package initproc

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// The layout shared with spawner.c.
const (
	tableBase  = 0x100000000
	tableMagic = 0x626a7232
	headerSize = 16

	// ProcFD is a descriptor of the host's /proc that every child has until it
	// executes its program; the root of a run may not show it.
	ProcFD = 62

	opSize = 56

	opMaps  = 0x10000
	opAlive = 0x10001
	opFork  = 0x10002
)

// Flag changes how one call of a table is treated.
type Flag uint32

const (
	// Ignore goes on after an error.
	Ignore Flag = 1 << iota
	// Store keeps the result for a later Use flag.
	Store
	// Full fails unless the result equals the third argument: a whole write.
	Full
)

// Use makes argument i the result kept by the last Store.
func Use(i int) Flag { return 0x100 << i }

// Table is a list of system calls to be made by a new process, with the memory
// their arguments point to. The zero value is ready.
type Table struct {
	data  []byte
	ops   []byte
	names []string
}

// New makes a table with room for an ordinary run.
func New() *Table {
	return &Table{data: make([]byte, 0, 8<<10), ops: make([]byte, 0, 160*opSize), names: make([]string, 0, 160)}
}

// Bytes puts b into the table's memory and returns its address.
func (t *Table) Bytes(b []byte) uint64 {
	for len(t.data)%8 != 0 {
		t.data = append(t.data, 0)
	}
	at := tableBase + headerSize + uint64(len(t.data))
	t.data = append(t.data, b...)
	return at
}

// String puts a NUL-terminated string into the table's memory. A NUL inside
// would silently cut it, so that is a panic: callers check names before.
func (t *Table) String(s string) uint64 {
	for i := range len(s) {
		if s[i] == 0 {
			panic(fmt.Sprintf("initproc: NUL in %q", s))
		}
	}
	at := tableBase + headerSize + uint64(len(t.data))
	t.data = append(append(t.data, s...), 0)
	return at
}

// Strings puts a NULL-terminated array of strings (argv, envp) into memory.
func (t *Table) Strings(list []string) uint64 {
	ptrs := make([]byte, 0, 8*(len(list)+1))
	for _, s := range list {
		ptrs = binary.NativeEndian.AppendUint64(ptrs, t.String(s))
	}
	return t.Bytes(binary.NativeEndian.AppendUint64(ptrs, 0))
}

// Call adds one system call. name is what an error is reported under.
func (t *Table) Call(name string, flags Flag, nr uintptr, args ...uint64) {
	t.add(name, flags, uint32(nr), args)
}

// Maps lets the spawner write the id maps of the request and waits for it. It
// follows the creation of a user namespace.
func (t *Table) Maps() { t.add("write id maps", 0, opMaps, nil) }

// Alive ends the child when the spawner is gone. It follows every (re-)arming of
// the parent-death signal.
func (t *Table) Alive() { t.add("look for the spawner", 0, opAlive, nil) }

// Fork makes the program's process; all later calls are its own and the last of
// them is execve. The process that walked the table until here becomes the reaper.
func (t *Table) Fork() { t.add("fork the program", 0, opFork, nil) }

func (t *Table) add(name string, flags Flag, nr uint32, args []uint64) {
	var op [opSize]byte
	binary.NativeEndian.PutUint32(op[0:], nr)
	binary.NativeEndian.PutUint32(op[4:], uint32(flags))
	for i, a := range args {
		binary.NativeEndian.PutUint64(op[8+8*i:], a)
	}
	t.ops = append(t.ops, op[:]...)
	t.names = append(t.names, name)
}

// Name says what the call at an index is for.
func (t *Table) Name(index int) string {
	if index < 0 || index >= len(t.names) {
		return "map the table"
	}
	return t.names[index]
}

// memfd writes the table into a sealed file in memory.
func (t *Table) memfd() (fd int, size int64, err error) {
	for len(t.data)%8 != 0 {
		t.data = append(t.data, 0)
	}
	buf := make([]byte, headerSize, headerSize+len(t.data)+len(t.ops))
	binary.NativeEndian.PutUint32(buf[0:], tableMagic)
	binary.NativeEndian.PutUint32(buf[4:], uint32(len(t.names)))
	binary.NativeEndian.PutUint64(buf[8:], tableBase+headerSize+uint64(len(t.data)))
	buf = append(append(buf, t.data...), t.ops...)
	fd, err = Memfd("belljar-table", buf, false)
	return fd, int64(len(buf)), err
}

// Memfd makes a file in memory that holds data and can no longer be changed. The
// descriptor is closed on exec. executable is for the spawner alone.
func Memfd(name string, data []byte, executable bool) (int, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	mode := unix.MFD_NOEXEC_SEAL
	if executable {
		mode = unix.MFD_EXEC
	}
	fd, err := unix.MemfdCreate(name, flags|mode)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return -1, fmt.Errorf("make a file in memory: %w", err)
	}
	for off := 0; off < len(data); {
		n, err := unix.Pwrite(fd, data[off:], int64(off))
		if err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("fill a file in memory: %w", err)
		}
		off += n
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("seal a file in memory: %w", err)
	}
	return fd, nil
}
