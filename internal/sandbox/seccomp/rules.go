package seccomp

// rule is how a profile treats one call. The generated tables name them.
type rule uint8

const (
	ruleNoSys rule = iota // not there: silent ENOSYS
	ruleAllow
	ruleRefuse // dangerous: EPERM
	ruleDone   // skipped, reported as a success
	ruleClone
	ruleIoctl
	ruleMknod
	ruleMknodat
	rulePersonality
	rulePrctl
	ruleSeccomp
	ruleSocket
	ruleSocketpair
	ruleNotInit
	ruleIoprio
	rulePriority

	ruleCount
)

// Values of the kernel's interface, the same on every architecture compiled
// for. They are written out because the package also builds where
// golang.org/x/sys/unix does not have them.
const (
	// Every CLONE_NEW* that clone takes. CLONE_NEWTIME lies in the bits that
	// clone uses for the exit signal: it exists for unshare and clone3 only.
	cloneNew = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	// CLONE_PARENT would hang a program's child on the process that started the
	// program, which is ours. Only container runtimes use it.
	cloneParent = 0x00008000

	afUnix    = 1
	afInet    = 2
	afInet6   = 10
	afNetlink = 16

	sockTypeMask = 0xf // the rest of the type argument is SOCK_NONBLOCK and SOCK_CLOEXEC
	sockStream   = 1
	sockDgram    = 2

	netlinkRoute = 0

	protoDefault = 0
	protoTCP     = 6
	protoUDP     = 17

	// The file type within a mode; 0 means a regular file to mknod.
	modeTypeMask = 0xf000
	modeFIFO     = 0x1000
	modeRegular  = 0x8000
	modeSocket   = 0xc000
)

// ruleNodes builds the decision for each rule.
func ruleNodes() [ruleCount]*node {
	allow, refuse := answer(Allow), answer(RefuseEPERM)
	unknown := answer(RefuseEINVAL)        // what an older kernel answers to an option it lacks
	noFamily := answer(RefuseEAFNOSUPPORT) // what a kernel without the module answers
	return [ruleCount]*node{
		ruleNoSys:  answer(RefuseENOSYS),
		ruleAllow:  allow,
		ruleRefuse: refuse,
		ruleDone:   answer(Done),

		// clone(flags, ...): the kernel takes the lower 32 bits.
		ruleClone: choose(low(0), cloneNew|cloneParent, refuse, on(0, allow)),

		ruleIoctl:   ioctlNode(allow, refuse),
		ruleMknod:   mknodNode(1, allow, refuse),
		ruleMknodat: mknodNode(2, allow, refuse),

		// personality(unsigned int): PER_LINUX, PER_LINUX32, UNAME26 with either,
		// and the question for the current one, as moby has it.
		rulePersonality: choose(low(0), allBits, refuse,
			on(0, allow), on(8, allow), on(0x20000, allow), on(0x20008, allow), on(allBits, allow)),

		rulePrctl:      prctlNode(allow, refuse, unknown),
		ruleSeccomp:    seccompNode(allow, refuse, unknown),
		ruleSocket:     socketNode(allow, refuse, noFamily),
		ruleSocketpair: choose(low(0), allBits, noFamily, on(afUnix, allow)),

		// PID 1 of a run is ours, and has the program's identity: a program that
		// could take its processor time away would put off its own end, and one that
		// could limit it could end it in place of itself. It is also the only member
		// of its session and process group.
		ruleNotInit:  choose(low(0), allBits, allow, on(1, refuse)),
		ruleIoprio:   priorityNode(1, allow, refuse),
		rulePriority: priorityNode(0, allow, refuse),
	}
}

// priorityNode judges setpriority and ioprio_set (int which, int who, ...). which is
// a process, a process group or a user, numbered from first; a user's are all
// processes of the run, PID 1 too.
func priorityNode(first uint32, allow, refuse *node) *node {
	one := choose(low(1), allBits, allow, on(1, refuse))
	return choose(low(0), allBits, refuse, branch{first, first + 1, one})
}

// socketNode judges socket(int family, int type, int protocol).
//
// UNIX, IPv4 and IPv6 are ordinary: the run has a network of its own with
// nothing on it but loopback. Only TCP and UDP may be named on top, since a
// protocol number loads a kernel module (SCTP, DCCP, L2TP, SMC, MPTCP) and the
// old SOCK_PACKET type turns an IPv4 socket into a packet one. The C library,
// Node and Go ask routing netlink for the interfaces; the other netlink
// families are the larger part of that attack surface.
func socketNode(allow, refuse, noFamily *node) *node {
	noProtocol := answer(RefuseEPROTONOSUPPORT)
	inet := choose(low(1), sockTypeMask, refuse,
		branch{sockStream, sockDgram, choose(low(2), allBits, noProtocol,
			on(protoDefault, allow), on(protoTCP, allow), on(protoUDP, allow))})
	netlink := choose(low(2), allBits, noProtocol, on(netlinkRoute, allow))
	return choose(low(0), allBits, noFamily,
		on(afUnix, allow), on(afInet, inet), on(afInet6, inet), on(afNetlink, netlink))
}

// ioctlNode judges ioctl(fd, unsigned int command, ...). It names what is
// dangerous and allows the rest: which commands exist depends on the file, a
// run sees few kinds of file, and an allowlist would break programs for little.
func ioctlNode(allow, refuse *node) *node {
	const (
		tiocsti   = 0x5412 // types into the terminal, as the person before it
		tioclinux = 0x541c // the console's clipboard: pastes, so types too
		tioccons  = 0x541d // takes over the console's output
		tiocsetd  = 0x5423 // loads a line discipline, a rich source of kernel bugs
		uffdNew   = 0xaa00 // userfaultfd by way of /dev/userfaultfd

		typeMask = 0xff00
		nsType   = 0xb700 // walks from a namespace to its parent, owner and siblings
	)
	rest := choose(low(1), typeMask, allow, on(nsType, refuse))
	return choose(low(1), allBits, rest,
		on(tiocsti, refuse), branch{tioclinux, tioccons, refuse}, on(tiocsetd, refuse), on(uffdNew, refuse))
}

// mknodNode judges the mode of mknod and mknodat: no device, not even the
// 0:0 one that overlayfs takes as a deletion.
func mknodNode(arg int, allow, refuse *node) *node {
	return choose(low(arg), modeTypeMask, refuse,
		on(0, allow), on(modeRegular, allow), on(modeFIFO, allow), on(modeSocket, allow))
}

// seccompNode judges seccomp(unsigned int operation, unsigned int flags, ...).
//
// A program may put a stricter filter over ours (sshd, man, browsers do): the
// strictest answer of all filters wins, so none can loosen ours. What it may
// not have are the flags beyond thread synchronisation: a listener, which would
// sit in the place of the one that explains refusals; logging, which fills the
// host's log; and opting out of the speculation guards.
func seccompNode(allow, refuse, unknown *node) *node {
	const (
		setStrict     = 0
		setFilter     = 1
		actionAvail   = 2
		notifSizes    = 3
		flagTsync     = 0x1
		flagTsyncESRC = 0x10
	)
	filter := choose(low(1), ^uint32(flagTsync|flagTsyncESRC), refuse, on(0, allow))
	return choose(low(0), allBits, unknown,
		on(setStrict, allow), on(setFilter, filter), branch{actionAvail, notifSizes, allow})
}

// prctlNode judges prctl(int option, ...). What programs and runtimes use and
// what only concerns, or only tightens, the caller is allowed. What reaches
// further is refused. Options of neither list get the answer of a kernel that
// does not have them.
func prctlNode(allow, refuse, unknown *node) *node {
	const (
		setVMA       = 0x53564d41 // names a memory area: Go, C library, allocators
		setVMAName   = 0
		getAuxv      = 0x41555856 // feature detection without /proc
		capAmbient   = 47
		ambientIsSet = 1
		ambientLower = 3
		ambientClear = 4
	)
	return choose(low(0), allBits, unknown,
		branch{1, 2, allow},   // PR_SET_PDEATHSIG, PR_GET_PDEATHSIG
		branch{3, 4, allow},   // PR_GET_DUMPABLE, PR_SET_DUMPABLE: of the caller, who cannot be traced anyway
		branch{7, 8, allow},   // PR_GET_KEEPCAPS, PR_SET_KEEPCAPS: there is nothing to keep
		branch{15, 16, allow}, // PR_SET_NAME, PR_GET_NAME
		branch{21, 22, allow}, // PR_GET_SECCOMP, PR_SET_SECCOMP: see seccompNode, without flags
		on(23, allow),         // PR_CAPBSET_READ
		on(24, refuse),        // PR_CAPBSET_DROP: wants CAP_SETPCAP
		on(27, allow),         // PR_GET_SECUREBITS
		on(28, refuse),        // PR_SET_SECUREBITS: wants CAP_SETPCAP
		branch{29, 30, allow}, // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
		on(35, refuse),        // PR_SET_MM: rewrites what /proc shows of the caller
		branch{36, 37, allow}, // PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER: below our reaper
		branch{38, 39, allow}, // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
		branch{41, 42, allow}, // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
		// PR_CAP_AMBIENT: all but raising. The operation is a long.
		on(capAmbient, equal64(1, allow, refuse, ambientIsSet, ambientLower, ambientClear)),
		branch{50, 51, allow}, // PR_SVE_SET_VL, PR_SVE_GET_VL (arm64): the JVM sizes vectors with them
		on(52, allow),         // PR_GET_SPECULATION_CTRL
		on(53, refuse),        // PR_SET_SPECULATION_CTRL: could lift a guard
		branch{55, 56, allow}, // PR_SET_TAGGED_ADDR_CTRL, PR_GET_TAGGED_ADDR_CTRL (arm64): malloc with memory tags
		on(57, refuse),        // PR_SET_IO_FLUSHER: wants CAP_SYS_RESOURCE
		on(59, refuse),        // PR_SET_SYSCALL_USER_DISPATCH
		on(62, refuse),        // PR_SCHED_CORE: a cookie keeps neighbours off the core's other thread
		branch{63, 64, allow}, // PR_SME_SET_VL, PR_SME_GET_VL (arm64)
		on(67, refuse),        // PR_SET_MEMORY_MERGE: pages merged between runs tell one about the other
		branch{74, 76, allow}, // PR_{GET,SET,LOCK}_SHADOW_STACK_STATUS (arm64): start-up of the C library
		on(getAuxv, allow),
		on(setVMA, equal64(1, allow, unknown, setVMAName)),
	)
}
