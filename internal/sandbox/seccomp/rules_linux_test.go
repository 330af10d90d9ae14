package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

const top = 1 << 32 // a bit that the kernel drops from an int

// numbers of the judged calls on each architecture, amd64 first.
var numbers = map[string][2]uint32{
	"ioctl": {16, 29}, "socket": {41, 198}, "socketpair": {53, 199}, "clone": {56, 220}, "mknodat": {259, 33},
	"prlimit64": {302, 261}, "sched_setscheduler": {144, 119}, "sched_setattr": {314, 274}, "sched_setparam": {142, 118},
	"sched_setaffinity": {203, 122}, "setpriority": {141, 140}, "ioprio_set": {251, 30},
	"personality": {135, 92}, "prctl": {157, 167}, "seccomp": {317, 277},
}

func TestArguments(t *testing.T) {
	type args = [6]uint64
	cases := []struct {
		name string
		call string
		args args
		want Action
	}{
		{"a thread", "clone", args{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID}, Allow},
		{"fork", "clone", args{unix.CLONE_CHILD_CLEARTID | unix.CLONE_CHILD_SETTID | uint64(unix.SIGCHLD)}, Allow},
		{"vfork", "clone", args{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, Allow},
		{"with a pidfd", "clone", args{unix.CLONE_PIDFD | uint64(unix.SIGCHLD)}, Allow},
		{"high bits alone", "clone", args{top | uint64(unix.SIGCHLD)}, Allow},
		{"NEWNS", "clone", args{unix.CLONE_NEWNS}, RefuseEPERM},
		{"NEWUTS", "clone", args{unix.CLONE_NEWUTS}, RefuseEPERM},
		{"NEWIPC", "clone", args{unix.CLONE_NEWIPC}, RefuseEPERM},
		{"NEWUSER", "clone", args{unix.CLONE_NEWUSER}, RefuseEPERM},
		{"NEWPID", "clone", args{unix.CLONE_NEWPID}, RefuseEPERM},
		{"NEWNET", "clone", args{unix.CLONE_NEWNET}, RefuseEPERM},
		{"NEWCGROUP", "clone", args{unix.CLONE_NEWCGROUP}, RefuseEPERM},
		{"NEWUSER among others", "clone", args{unix.CLONE_VM | unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, RefuseEPERM},
		{"NEWUSER with high bits", "clone", args{top | unix.CLONE_NEWUSER}, RefuseEPERM},
		{"PARENT", "clone", args{unix.CLONE_PARENT | uint64(unix.SIGCHLD)}, RefuseEPERM},

		{"unix stream", "socket", args{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, Allow},
		{"unix seqpacket", "socket", args{unix.AF_UNIX, unix.SOCK_SEQPACKET}, Allow},
		{"tcp", "socket", args{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP}, Allow},
		{"tcp over 6", "socket", args{unix.AF_INET6, unix.SOCK_STREAM}, Allow},
		{"udp", "socket", args{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, Allow},
		{"udp over 6", "socket", args{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, 0}, Allow},
		{"raw", "socket", args{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, RefuseEPERM},
		{"raw over 6", "socket", args{unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_TCP}, RefuseEPERM},
		{"packet by way of inet", "socket", args{unix.AF_INET, unix.SOCK_PACKET, 0}, RefuseEPERM},
		{"packet with flags", "socket", args{unix.AF_INET, unix.SOCK_PACKET | unix.SOCK_CLOEXEC, 0}, RefuseEPERM},
		{"seqpacket over inet", "socket", args{unix.AF_INET, unix.SOCK_SEQPACKET, 0}, RefuseEPERM},
		{"type 0", "socket", args{unix.AF_INET, 0, 0}, RefuseEPERM},
		{"ping", "socket", args{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, RefuseEPROTONOSUPPORT},
		{"sctp", "socket", args{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, RefuseEPROTONOSUPPORT},
		{"mptcp", "socket", args{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, RefuseEPROTONOSUPPORT},
		{"l2tp", "socket", args{unix.AF_INET6, unix.SOCK_DGRAM, 115}, RefuseEPROTONOSUPPORT},
		{"protocol with high bits", "socket", args{unix.AF_INET, unix.SOCK_STREAM, top | unix.IPPROTO_SCTP}, RefuseEPROTONOSUPPORT},
		{"routing netlink", "socket", args{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, Allow},
		{"routing netlink, datagrams", "socket", args{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_ROUTE}, Allow},
		{"audit netlink", "socket", args{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, RefuseEPROTONOSUPPORT},
		{"netfilter netlink", "socket", args{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, RefuseEPROTONOSUPPORT},
		{"uevent netlink", "socket", args{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, RefuseEPROTONOSUPPORT},
		{"netlink with high bits", "socket", args{top | unix.AF_NETLINK, unix.SOCK_RAW, top | unix.NETLINK_XFRM}, RefuseEPROTONOSUPPORT},
		{"packet", "socket", args{unix.AF_PACKET, unix.SOCK_RAW}, RefuseEAFNOSUPPORT},
		{"vsock", "socket", args{unix.AF_VSOCK, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"vsock with high bits", "socket", args{top | unix.AF_VSOCK, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"alg", "socket", args{unix.AF_ALG, unix.SOCK_SEQPACKET}, RefuseEAFNOSUPPORT},
		{"xdp", "socket", args{unix.AF_XDP, unix.SOCK_RAW}, RefuseEAFNOSUPPORT},
		{"can", "socket", args{unix.AF_CAN, unix.SOCK_RAW, 1}, RefuseEAFNOSUPPORT},
		{"smc", "socket", args{unix.AF_SMC, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"no family", "socket", args{0, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"a family beyond all", "socket", args{1000, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"minus one", "socket", args{^uint64(0), unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},

		{"unix", "socketpair", args{unix.AF_UNIX, unix.SOCK_STREAM}, Allow},
		{"inet", "socketpair", args{unix.AF_INET, unix.SOCK_STREAM}, RefuseEAFNOSUPPORT},
		{"tipc", "socketpair", args{unix.AF_TIPC, unix.SOCK_SEQPACKET}, RefuseEAFNOSUPPORT},
		{"tipc with high bits", "socketpair", args{top | unix.AF_TIPC, unix.SOCK_SEQPACKET}, RefuseEAFNOSUPPORT},

		{"window size", "ioctl", args{1, unix.TIOCGWINSZ}, Allow},
		{"terminal modes", "ioctl", args{1, unix.TCGETS}, Allow},
		{"bytes waiting", "ioctl", args{1, unix.TIOCINQ}, Allow},
		{"controlling terminal", "ioctl", args{1, unix.TIOCSCTTY}, Allow},
		{"pty number", "ioctl", args{1, unix.TIOCGPTN}, Allow},
		{"interface list", "ioctl", args{1, unix.SIOCGIFCONF}, Allow},
		{"clone a file", "ioctl", args{1, unix.FICLONE}, Allow},
		{"TIOCSTI", "ioctl", args{1, unix.TIOCSTI}, RefuseEPERM},
		{"TIOCSTI with high bits", "ioctl", args{1, top | unix.TIOCSTI}, RefuseEPERM},
		{"TIOCSTI with all high bits", "ioctl", args{1, 0xffffffff00000000 | unix.TIOCSTI}, RefuseEPERM},
		{"TIOCLINUX", "ioctl", args{1, 0x541c}, RefuseEPERM},
		{"TIOCCONS", "ioctl", args{1, unix.TIOCCONS}, RefuseEPERM},
		{"TIOCSETD", "ioctl", args{1, unix.TIOCSETD}, RefuseEPERM},
		{"TIOCGETD", "ioctl", args{1, unix.TIOCGETD}, Allow},
		{"userfaultfd by device", "ioctl", args{1, 0xaa00}, RefuseEPERM},
		{"owner of a namespace", "ioctl", args{1, unix.NS_GET_USERNS}, RefuseEPERM},
		{"parent of a namespace", "ioctl", args{1, unix.NS_GET_PARENT}, RefuseEPERM},
		{"next mount namespace", "ioctl", args{1, 0x8010b70b}, RefuseEPERM},
		{"parent of a namespace with high bits", "ioctl", args{1, top | unix.NS_GET_PARENT}, RefuseEPERM},

		{"regular file", "mknodat", args{0, 0, unix.S_IFREG | 0o644}, Allow},
		{"no type", "mknodat", args{0, 0, 0o644}, Allow},
		{"fifo", "mknodat", args{0, 0, unix.S_IFIFO | 0o600}, Allow},
		{"socket", "mknodat", args{0, 0, unix.S_IFSOCK | 0o600}, Allow},
		{"character device", "mknodat", args{0, 0, unix.S_IFCHR | 0o600}, RefuseEPERM},
		{"block device", "mknodat", args{0, 0, unix.S_IFBLK | 0o600}, RefuseEPERM},
		{"block device above a fifo", "mknodat", args{0, 0, unix.S_IFBLK | unix.S_IFIFO}, RefuseEPERM},
		{"character device with bits above a mode", "mknodat", args{0, 0, top | 0x10000 | unix.S_IFCHR}, RefuseEPERM},
		{"folder", "mknodat", args{0, 0, unix.S_IFDIR}, RefuseEPERM},

		{"own limits", "prlimit64", args{0, 7, 1}, Allow},
		{"a child's limits", "prlimit64", args{2, 0, 1}, Allow},
		{"limits of PID 1", "prlimit64", args{1, 0, 1}, RefuseEPERM},
		{"limits of PID 1, high bits", "prlimit64", args{1 | 7<<32, 0, 1}, RefuseEPERM},
		{"own scheduling", "sched_setscheduler", args{0, 3}, Allow},
		{"scheduling of PID 1", "sched_setscheduler", args{1, 5}, RefuseEPERM},
		{"attributes of PID 1", "sched_setattr", args{1}, RefuseEPERM},
		{"parameters of PID 1", "sched_setparam", args{1}, RefuseEPERM},
		{"a thread's processors", "sched_setaffinity", args{77, 8}, Allow},
		{"processors of PID 1", "sched_setaffinity", args{1, 8}, RefuseEPERM},
		{"own priority", "setpriority", args{0, 0, 19}, Allow},
		{"a child's priority", "setpriority", args{0, 9, 19}, Allow},
		{"priority of PID 1", "setpriority", args{0, 1, 19}, RefuseEPERM},
		{"priority of its group", "setpriority", args{1, 1, 19}, RefuseEPERM},
		{"priority of everything the user has", "setpriority", args{2, 0, 19}, RefuseEPERM},
		{"own io priority", "ioprio_set", args{1, 0, 0}, Allow},
		{"io priority of PID 1", "ioprio_set", args{1, 1, 0}, RefuseEPERM},
		{"io priority of its group", "ioprio_set", args{2, 1, 0}, RefuseEPERM},
		{"io priority of the user", "ioprio_set", args{3, 1000, 0}, RefuseEPERM},
		{"question", "personality", args{0xffffffff}, Allow},
		{"question, as a long", "personality", args{^uint64(0)}, Allow},
		{"linux32", "personality", args{8}, Allow},
		{"no address randomisation", "personality", args{0x0040000}, RefuseEPERM},
		{"read implies exec", "personality", args{0x0400000}, RefuseEPERM},
		{"mmap at page zero", "personality", args{0x0100000}, RefuseEPERM},
		{"another system", "personality", args{1}, RefuseEPERM},
		{"high bits before a bad one", "personality", args{top | 0x0040000}, RefuseEPERM},

		{"strict", "seccomp", args{unix.SECCOMP_SET_MODE_STRICT}, Allow},
		{"filter", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER}, Allow},
		{"filter for all threads", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH}, Allow},
		{"listener", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, RefuseEPERM},
		{"listener among others", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC}, RefuseEPERM},
		{"listener with high bits", "seccomp", args{top | unix.SECCOMP_SET_MODE_FILTER, top | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, RefuseEPERM},
		{"logging", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_LOG}, RefuseEPERM},
		{"without speculation guard", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW}, RefuseEPERM},
		{"killable listener", "seccomp", args{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV}, RefuseEPERM},
		{"question", "seccomp", args{unix.SECCOMP_GET_ACTION_AVAIL}, Allow},
		{"a new operation", "seccomp", args{4}, RefuseEINVAL},

		{"name", "prctl", args{unix.PR_SET_NAME}, Allow},
		{"death signal", "prctl", args{unix.PR_SET_PDEATHSIG}, Allow},
		{"dumpable", "prctl", args{unix.PR_SET_DUMPABLE}, Allow},
		{"bounding set", "prctl", args{unix.PR_CAPBSET_READ}, Allow},
		{"bounding set, drop", "prctl", args{unix.PR_CAPBSET_DROP}, RefuseEPERM},
		{"keep capabilities", "prctl", args{unix.PR_SET_KEEPCAPS}, Allow},
		{"timer slack", "prctl", args{unix.PR_SET_TIMERSLACK}, Allow},
		{"no new privileges", "prctl", args{unix.PR_SET_NO_NEW_PRIVS}, Allow},
		{"subreaper", "prctl", args{unix.PR_SET_CHILD_SUBREAPER}, Allow},
		{"huge pages", "prctl", args{unix.PR_SET_THP_DISABLE}, Allow},
		{"filter the old way", "prctl", args{unix.PR_SET_SECCOMP, 2}, Allow},
		{"memory layout", "prctl", args{unix.PR_SET_MM}, RefuseEPERM},
		{"memory layout with high bits", "prctl", args{top | unix.PR_SET_MM}, RefuseEPERM},
		{"secure bits", "prctl", args{unix.PR_SET_SECUREBITS}, RefuseEPERM},
		{"secure bits, question", "prctl", args{unix.PR_GET_SECUREBITS}, Allow},
		{"speculation guard, question", "prctl", args{unix.PR_GET_SPECULATION_CTRL}, Allow},
		{"speculation guard", "prctl", args{unix.PR_SET_SPECULATION_CTRL}, RefuseEPERM},
		{"io flusher", "prctl", args{unix.PR_SET_IO_FLUSHER}, RefuseEPERM},
		{"user dispatch", "prctl", args{unix.PR_SET_SYSCALL_USER_DISPATCH}, RefuseEPERM},
		{"core scheduling", "prctl", args{unix.PR_SCHED_CORE}, RefuseEPERM},
		{"page merging", "prctl", args{unix.PR_SET_MEMORY_MERGE}, RefuseEPERM},
		{"vector length", "prctl", args{unix.PR_SVE_GET_VL}, Allow},
		{"tagged addresses", "prctl", args{unix.PR_SET_TAGGED_ADDR_CTRL}, Allow},
		{"shadow stack", "prctl", args{unix.PR_SET_SHADOW_STACK_STATUS}, Allow},
		{"auxiliary vector", "prctl", args{unix.PR_GET_AUXV}, Allow},
		{"ambient, question", "prctl", args{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_IS_SET}, Allow},
		{"ambient, lower", "prctl", args{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER}, Allow},
		{"ambient, clear", "prctl", args{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL}, Allow},
		{"ambient, raise", "prctl", args{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE}, RefuseEPERM},
		{"ambient, a long that only looks like a question", "prctl", args{unix.PR_CAP_AMBIENT, top | unix.PR_CAP_AMBIENT_IS_SET}, RefuseEPERM},
		{"area name", "prctl", args{unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME}, Allow},
		{"area, another operation", "prctl", args{unix.PR_SET_VMA, 1}, RefuseEINVAL},
		{"area, a long that only looks like a name", "prctl", args{unix.PR_SET_VMA, top}, RefuseEINVAL},
		{"an option of a later kernel", "prctl", args{unix.PR_FUTEX_HASH}, RefuseEINVAL},
		{"option zero", "prctl", args{0}, RefuseEINVAL},
		{"option minus one", "prctl", args{^uint64(0)}, RefuseEINVAL},
	}
	for i, x := range expectations {
		f := compile(t, x.arch)
		for _, c := range cases {
			t.Run(x.arch+"/"+c.call+"/"+c.name, func(t *testing.T) {
				if got := ask(t, f, x.audit, numbers[c.call][i], c.args); got != c.want {
					t.Errorf("%s(%#x): %v, want %v", c.call, c.args, got, c.want)
				}
			})
		}
	}
}

// mknod is mknodat with the mode one argument earlier, and amd64 has both.
func TestMknodLooksAtItsOwnArgument(t *testing.T) {
	f := compile(t, "amd64")
	for mode := range uint64(16) {
		mode <<= 12
		want := ask(t, f, auditAMD64, 259, [6]uint64{2: mode})
		if got := ask(t, f, auditAMD64, 133, [6]uint64{1: mode, 2: unix.S_IFREG}); got != want {
			t.Errorf("mknod with type %#x: %v, mknodat: %v", mode, got, want)
		}
	}
}

func TestActionValuesAreTheKernels(t *testing.T) {
	for _, c := range []struct {
		got  Action
		want uint32
	}{
		{Allow, unix.SECCOMP_RET_ALLOW},
		{KillProcess, unix.SECCOMP_RET_KILL_PROCESS},
		{Done, unix.SECCOMP_RET_ERRNO},
		{RefuseEPERM, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{RefuseEINVAL, unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{RefuseENOSYS, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{RefuseEPROTONOSUPPORT, unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{RefuseEAFNOSUPPORT, unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)},
	} {
		if uint32(c.got) != c.want {
			t.Errorf("%v is %#x, the kernel's is %#x", c.got, uint32(c.got), c.want)
		}
	}
}
