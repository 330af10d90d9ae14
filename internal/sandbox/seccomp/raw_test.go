package seccomp

import (
	"encoding/binary"
	"fmt"
)

// This is a second reading of a filter's bytes, written after the kernel's
// rules for seccomp programs (seccomp_check_filter and the classic BPF
// interpreter) and sharing nothing with the simulator that Evaluate uses.

type rawResult struct {
	action Action
	steps  int
	onArgs bool // a word other than number and architecture was read
}

// rawRun runs a filter over struct seccomp_data as a little-endian kernel lays
// it out. An instruction that the kernel would not take is an error.
func rawRun(code []byte, arch, nr uint32, args [6]uint64) (rawResult, error) {
	data := make([]byte, 0, 64)
	data = binary.LittleEndian.AppendUint32(data, nr)
	data = binary.LittleEndian.AppendUint32(data, arch)
	data = binary.LittleEndian.AppendUint64(data, 0xfeedfacecafef00d) // instruction pointer
	for _, a := range args {
		data = binary.LittleEndian.AppendUint64(data, a)
	}
	const (
		ldWAbs = 0x20
		retK   = 0x06
		andK   = 0x54
		ja     = 0x05
		jeqK   = 0x15
		jgtK   = 0x25
		jgeK   = 0x35
		jsetK  = 0x45
	)
	var r rawResult
	var a uint32
	for pc := 0; ; pc++ {
		if (pc+1)*8 > len(code) {
			return r, fmt.Errorf("ran past the end at %d", pc)
		}
		i := code[pc*8:]
		op, jt, jf, k := binary.LittleEndian.Uint16(i), int(i[2]), int(i[3]), binary.LittleEndian.Uint32(i[4:])
		r.steps++
		jump := func(cond bool) {
			if cond {
				pc += jt
			} else {
				pc += jf
			}
		}
		switch op {
		case ldWAbs:
			if k >= 64 || k%4 != 0 {
				return r, fmt.Errorf("load of offset %d", k)
			}
			if k > 4 {
				r.onArgs = true
			}
			a = binary.LittleEndian.Uint32(data[k:])
		case andK:
			a &= k
		case ja:
			pc += int(k)
		case jeqK:
			jump(a == k)
		case jgtK:
			jump(a > k)
		case jgeK:
			jump(a >= k)
		case jsetK:
			jump(a&k != 0)
		case retK:
			r.action = Action(k)
			return r, nil
		default:
			return r, fmt.Errorf("instruction %#x, which seccomp does not take or the dry run does not follow", op)
		}
	}
}
