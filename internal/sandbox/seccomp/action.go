package seccomp

import "strconv"

// Action is what the filter answers to a call: a SECCOMP_RET_* value with its
// data in the low 16 bits, as in linux/seccomp.h.
type Action uint32

// The actions this package uses. Errno values are the same on every
// architecture it compiles for.
const (
	KillProcess Action = 0x80000000
	Allow       Action = 0x7fff0000

	errnoBase Action = 0x00050000

	// Done skips the call and reports success.
	Done Action = errnoBase

	RefuseEPERM           = errnoBase | 1
	RefuseEINVAL          = errnoBase | 22
	RefuseENOSYS          = errnoBase | 38
	RefuseEPROTONOSUPPORT = errnoBase | 93
	RefuseEAFNOSUPPORT    = errnoBase | 97
)

// Parts of an action word, as the kernel reads it.
const (
	actionMask = 0xffff0000
	dataMask   = 0x0000ffff
)

// String names the action: allow, done, errno(EPERM), kill_process. Values that
// no filter of this package contains are shown in hexadecimal.
func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Done:
		return "done"
	case KillProcess:
		return "kill_process"
	case RefuseEPERM:
		return "errno(EPERM)"
	case RefuseEINVAL:
		return "errno(EINVAL)"
	case RefuseENOSYS:
		return "errno(ENOSYS)"
	case RefuseEPROTONOSUPPORT:
		return "errno(EPROTONOSUPPORT)"
	case RefuseEAFNOSUPPORT:
		return "errno(EAFNOSUPPORT)"
	}
	if a&actionMask == errnoBase {
		return "errno(" + strconv.Itoa(int(a&dataMask)) + ")"
	}
	return "action(0x" + strconv.FormatUint(uint64(a), 16) + ")"
}
