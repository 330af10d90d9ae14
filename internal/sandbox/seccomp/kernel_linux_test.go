package seccomp

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// probe is one call to the real kernel. Its arguments are such that the call
// does no harm even without a filter: bad descriptors, null pointers, flags
// that exclude each other.
type probe struct {
	name string
	nr   uintptr
	args [6]uintptr
	want unix.Errno // under the filter; 0: the call succeeds
	bare unix.Errno // the kernel's own answer, where every kernel gives the same
}

func (p probe) call() unix.Errno {
	r, _, errno := unix.RawSyscall6(p.nr, p.args[0], p.args[1], p.args[2], p.args[3], p.args[4], p.args[5])
	if errno == 0 && (p.nr == unix.SYS_SOCKET) {
		unix.RawSyscall(unix.SYS_CLOSE, r, 0, 0)
	}
	return errno
}

const (
	none   = ^uintptr(0) // a descriptor that is not open
	highly = uintptr(1) << 32
)

var probes = []probe{
	{name: "mount", nr: unix.SYS_MOUNT, want: unix.EPERM},
	{name: "umount2", nr: unix.SYS_UMOUNT2, want: unix.EPERM},
	{name: "pivot_root", nr: unix.SYS_PIVOT_ROOT, want: unix.EPERM},
	{name: "chroot", nr: unix.SYS_CHROOT, want: unix.EPERM},
	{name: "open_tree", nr: unix.SYS_OPEN_TREE, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "move_mount", nr: unix.SYS_MOVE_MOUNT, args: [6]uintptr{none, 0, none}, want: unix.EPERM},
	{name: "fsopen", nr: unix.SYS_FSOPEN, want: unix.EPERM},
	{name: "mount_setattr", nr: unix.SYS_MOUNT_SETATTR, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "unshare", nr: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS | 0x80000000}, want: unix.EPERM},
	{name: "setns", nr: unix.SYS_SETNS, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "clone with a namespace", nr: unix.SYS_CLONE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}, want: unix.EPERM},
	{name: "clone with a namespace, high bits", nr: unix.SYS_CLONE, args: [6]uintptr{highly | unix.CLONE_NEWUSER | unix.CLONE_FS}, want: unix.EPERM},
	{name: "clone3", nr: unix.SYS_CLONE3, want: unix.ENOSYS},
	{name: "ptrace", nr: unix.SYS_PTRACE, args: [6]uintptr{unix.PTRACE_SEIZE, none}, want: unix.EPERM},
	{name: "process_vm_readv", nr: unix.SYS_PROCESS_VM_READV, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "pidfd_getfd", nr: unix.SYS_PIDFD_GETFD, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "kcmp", nr: unix.SYS_KCMP, args: [6]uintptr{none, none}, want: unix.EPERM},
	{name: "bpf", nr: unix.SYS_BPF, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "perf_event_open", nr: unix.SYS_PERF_EVENT_OPEN, want: unix.EPERM},
	{name: "userfaultfd", nr: unix.SYS_USERFAULTFD, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "keyctl", nr: unix.SYS_KEYCTL, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "add_key", nr: unix.SYS_ADD_KEY, want: unix.EPERM},
	{name: "memfd_secret", nr: unix.SYS_MEMFD_SECRET, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "name_to_handle_at", nr: unix.SYS_NAME_TO_HANDLE_AT, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "open_by_handle_at", nr: unix.SYS_OPEN_BY_HANDLE_AT, args: [6]uintptr{none}, want: unix.EPERM},
	{name: "init_module", nr: unix.SYS_INIT_MODULE, want: unix.EPERM},
	{name: "kexec_load", nr: unix.SYS_KEXEC_LOAD, args: [6]uintptr{0, none}, want: unix.EPERM},
	{name: "io_uring_setup", nr: unix.SYS_IO_URING_SETUP, args: [6]uintptr{4}, want: unix.ENOSYS},
	{name: "io_uring_enter", nr: unix.SYS_IO_URING_ENTER, args: [6]uintptr{none}, want: unix.ENOSYS},
	{name: "landlock", nr: unix.SYS_LANDLOCK_CREATE_RULESET, args: [6]uintptr{0, 0, 1}, want: unix.ENOSYS},
	{name: "get_mempolicy", nr: unix.SYS_GET_MEMPOLICY, want: unix.ENOSYS},
	{name: "number of no call", nr: 600, want: unix.ENOSYS, bare: unix.ENOSYS},
	{name: "number with the x32 bit", nr: 0x40000000 | unix.SYS_GETPID, want: unix.ENOSYS},

	{name: "ioctl TIOCSTI", nr: unix.SYS_IOCTL, args: [6]uintptr{none, unix.TIOCSTI}, want: unix.EPERM, bare: unix.EBADF},
	{name: "ioctl TIOCSTI, high bits", nr: unix.SYS_IOCTL, args: [6]uintptr{none, highly | unix.TIOCSTI}, want: unix.EPERM, bare: unix.EBADF},
	{name: "ioctl TIOCLINUX", nr: unix.SYS_IOCTL, args: [6]uintptr{none, 0x541c}, want: unix.EPERM, bare: unix.EBADF},
	{name: "ioctl TIOCSETD", nr: unix.SYS_IOCTL, args: [6]uintptr{none, unix.TIOCSETD}, want: unix.EPERM, bare: unix.EBADF},
	{name: "ioctl NS_GET_PARENT", nr: unix.SYS_IOCTL, args: [6]uintptr{none, unix.NS_GET_PARENT}, want: unix.EPERM, bare: unix.EBADF},
	{name: "ioctl TCGETS", nr: unix.SYS_IOCTL, args: [6]uintptr{none, unix.TCGETS}, want: unix.EBADF, bare: unix.EBADF},

	{name: "socket unix", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}},
	{name: "socket tcp", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM}},
	{name: "socket udp", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP}},
	{name: "socket routing netlink", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}},
	{name: "socket uevent netlink", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, want: unix.EPROTONOSUPPORT},
	{name: "socket sctp", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, want: unix.EPROTONOSUPPORT},
	{name: "socket raw", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, want: unix.EPERM},
	{name: "socket packet by way of inet", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_PACKET}, want: unix.EPERM},
	{name: "socket packet", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, want: unix.EAFNOSUPPORT},
	{name: "socket vsock", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, want: unix.EAFNOSUPPORT},
	{name: "socket vsock, high bits", nr: unix.SYS_SOCKET, args: [6]uintptr{highly | unix.AF_VSOCK, unix.SOCK_STREAM}, want: unix.EAFNOSUPPORT},
	{name: "socket alg", nr: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, want: unix.EAFNOSUPPORT},
	{name: "socketpair inet", nr: unix.SYS_SOCKETPAIR, args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM}, want: unix.EAFNOSUPPORT},

	{name: "prctl PR_SET_MM", nr: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_SET_MM, none}, want: unix.EPERM},
	{name: "prctl raising ambient", nr: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, 63}, want: unix.EPERM},
	{name: "prctl of a later kernel", nr: unix.SYS_PRCTL, args: [6]uintptr{9999}, want: unix.EINVAL, bare: unix.EINVAL},
	{name: "personality question", nr: unix.SYS_PERSONALITY, args: [6]uintptr{0xffffffff}},
	{name: "personality without randomisation", nr: unix.SYS_PERSONALITY, args: [6]uintptr{0x0040000}, want: unix.EPERM},
	{name: "mknodat character device", nr: unix.SYS_MKNODAT, args: [6]uintptr{none, 0, unix.S_IFCHR}, want: unix.EPERM},
	{name: "mknodat fifo", nr: unix.SYS_MKNODAT, args: [6]uintptr{none, 0, unix.S_IFIFO}, want: unix.EFAULT, bare: unix.EFAULT},
	{name: "second filter, null", nr: unix.SYS_SECCOMP, args: [6]uintptr{unix.SECCOMP_SET_MODE_FILTER}, want: unix.EFAULT, bare: unix.EFAULT},
	{name: "second filter with a listener, null", nr: unix.SYS_SECCOMP, args: [6]uintptr{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, want: unix.EPERM, bare: unix.EFAULT},
	{name: "syncfs of no file", nr: unix.SYS_SYNCFS, args: [6]uintptr{none}, bare: unix.EBADF},
	{name: "getpid", nr: unix.SYS_GETPID},
}

func TestRealKernelAnswers(t *testing.T) {
	stdout, stderr, err := helper(t, "probe")
	if err != nil {
		t.Fatalf("probe helper: %v: %s", err, stderr)
	}
	var results []probeResult
	if err := json.Unmarshal([]byte(stdout), &results); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	f := compile(t, runtime.GOARCH)
	for i, p := range probes {
		t.Run(p.name, func(t *testing.T) {
			if got := results[i].Filtered; got != p.want {
				t.Errorf("under the filter: %s, want %s", errnoName(got), errnoName(p.want))
			}
			if got := results[i].Bare; got != p.bare {
				t.Errorf("without the filter: %s, want %s", errnoName(got), errnoName(p.bare))
			}
			// The simulator must agree wherever the filter answers by itself.
			var args [6]uint64
			for i, a := range p.args {
				args[i] = uint64(a)
			}
			var audit uint32 = auditAMD64
			if runtime.GOARCH == "arm64" {
				audit = auditARM64
			}
			if a := ask(t, f, audit, uint32(p.nr), args); a != Allow && a != errnoBase|Action(p.want) {
				t.Errorf("the simulator says %v, the kernel %s", a, errnoName(results[i].Filtered))
			}
		})
	}
}

func errnoName(e unix.Errno) string {
	if e == 0 {
		return "success"
	}
	return unix.ErrnoName(e)
}

// helperGo is an ordinary Go program under the filter: threads, timers,
// sockets, files and children, through the runtime's own choice of calls.
func helperGo() error {
	if err := install(); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	if !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		return fmt.Errorf("/proc/self/status does not show a filter")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed at the end
			}
			fmt.Fprint(c, "hello")
			c.Close()
		}
	}()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		wg.Go(func() {
			runtime.LockOSThread() // a thread each
			time.Sleep(time.Millisecond)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			var word string
			if _, err := fmt.Fscan(c, &word); err != nil || word != "hello" {
				errs <- fmt.Errorf("read %q, %v", word, err)
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		return err
	}
	if _, err := net.Interfaces(); err != nil {
		return err
	}
	out, err := exec.Command("/bin/sh", "-c", "echo $((6*7))").Output()
	if err != nil || string(out) != "42\n" {
		return fmt.Errorf("child: %q, %v", out, err)
	}
	_, err = os.Stdout.WriteString("go is fine\n")
	return err
}
