package seccomp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"golang.org/x/net/bpf"
)

// Profile names a set of rules.
type Profile string

// Default is the profile for programs of unknown authors in a sandbox with
// namespaces of its own.
const Default Profile = "default"

// NoSharedMemory goes on top of another profile where nothing but a watcher bounds
// memory: System V segments belong to no process and no file system, so a watcher
// cannot see them. shmget answers "no such call" and everything else is allowed.
const NoSharedMemory Profile = "no_shared_memory"

// Filter is a compiled profile. It is immutable and safe for concurrent use.
type Filter struct {
	bytes []byte
	hash  string

	vmOnce sync.Once
	vm     *bpf.VM
	vmErr  error
}

// slot holds a filter from the first time it is asked for.
type slot struct {
	once   sync.Once
	filter *Filter
	err    error
}

var compiled struct{ defaultAMD64, defaultARM64, sharedAMD64, sharedARM64 slot }

// Numbers of shmget.
const shmgetAMD64, shmgetARM64 = 29, 194

// Compile returns the filter of a profile for an architecture by its Go name
// ("amd64" or "arm64"), on any machine. The first call for a pair compiles, in
// some tens of microseconds, and later ones return the same Filter. An unknown
// architecture or profile is an error: there is no filter to fall back on.
func Compile(arch string, p Profile) (*Filter, error) {
	switch {
	case p == Default && arch == "amd64":
		return compiled.defaultAMD64.get(func() *node { return profileNode(auditAMD64, callsAMD64[:]) })
	case p == Default && arch == "arm64":
		return compiled.defaultARM64.get(func() *node { return profileNode(auditARM64, callsARM64[:]) })
	case p == NoSharedMemory && arch == "amd64":
		return compiled.sharedAMD64.get(func() *node { return withoutNode(auditAMD64, shmgetAMD64) })
	case p == NoSharedMemory && arch == "arm64":
		return compiled.sharedARM64.get(func() *node { return withoutNode(auditARM64, shmgetARM64) })
	case p != Default && p != NoSharedMemory:
		return nil, fmt.Errorf("unknown seccomp profile %q", string(p))
	}
	return nil, fmt.Errorf("no seccomp filter for architecture %q (have amd64, arm64)", arch)
}

func (s *slot) get(root func() *node) (*Filter, error) {
	s.once.Do(func() { s.filter, s.err = newFilter(root()) })
	return s.filter, s.err
}

// withoutNode takes one call away from whatever another filter allows. It answers
// for the native entry alone; the other filter ends a process that uses another.
func withoutNode(audit, nr uint32) *node {
	allow := answer(Allow)
	return choose(fieldArch, allBits, allow, on(audit, choose(fieldNumber, allBits, allow, on(nr, answer(RefuseENOSYS)))))
}

func newFilter(root *node) (*Filter, error) {
	raw, err := assemble(root)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(raw)*instructionSize)
	for _, i := range raw {
		b = binary.LittleEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	sum := sha256.Sum256(b)
	return &Filter{bytes: b, hash: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// instructionSize is the size of struct sock_filter.
const instructionSize = 8

// Bytes returns an array of struct sock_filter in the byte order of the
// filter's architecture (little-endian for both), for a struct sock_fprog of
// Len entries. The caller must not change it.
func (f *Filter) Bytes() []byte { return f.bytes }

// Len is the number of instructions.
func (f *Filter) Len() int { return len(f.bytes) / instructionSize }

// Hash identifies the filter: "sha256:" and the hexadecimal hash of Bytes.
func (f *Filter) Hash() string { return f.hash }

// Evaluate says what the filter answers to a call: auditArch is the kernel's
// AUDIT_ARCH_* value of the entry, nr the number, args the six arguments. It
// runs the very bytes in a simulator, so that self-tests can ask about calls
// that this machine cannot make.
func (f *Filter) Evaluate(auditArch, nr uint32, args [6]uint64) (Action, error) {
	f.vmOnce.Do(f.makeVM)
	if f.vmErr != nil {
		return 0, f.vmErr
	}
	// The simulator reads network packets, big-endian, where the kernel reads
	// its own words: each word is written big-endian at the kernel's offset.
	var data [dataSize]byte
	binary.BigEndian.PutUint32(data[fieldNumber:], nr)
	binary.BigEndian.PutUint32(data[fieldArch:], auditArch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[low(i):], uint32(a))
		binary.BigEndian.PutUint32(data[high(i):], uint32(a>>32))
	}
	out, err := f.vm.Run(data[:])
	if err != nil {
		return 0, fmt.Errorf("simulate seccomp filter: %w", err)
	}
	return Action(uint32(out)), nil
}

func (f *Filter) makeVM() {
	raw := make([]bpf.RawInstruction, f.Len())
	for i := range raw {
		b := f.bytes[i*instructionSize:]
		raw[i] = bpf.RawInstruction{
			Op: binary.LittleEndian.Uint16(b), Jt: b[2], Jf: b[3], K: binary.LittleEndian.Uint32(b[4:]),
		}
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		f.vmErr = fmt.Errorf("simulate seccomp filter: an instruction is unknown to the simulator")
		return
	}
	if f.vm, f.vmErr = bpf.NewVM(program); f.vmErr != nil {
		f.vmErr = fmt.Errorf("simulate seccomp filter: %w", f.vmErr)
	}
}
