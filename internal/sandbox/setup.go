package sandbox

import (
	"encoding/binary"
	"path"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/initproc"
	"github.com/belljar/belljar/internal/sandbox/rootfs"
	"github.com/belljar/belljar/internal/sandbox/seccomp"
	"golang.org/x/sys/unix"
)

// at is AT_FDCWD as an argument of a prepared call.
const at = ^uint64(99)

// spareProcesses keeps the resource limit behind the control group's, which counts
// what it refuses.
const spareProcesses = 8

// initOverhead is what the sandbox itself adds to a run's processes: PID 1.
const initOverhead = 1

// root prepares the calls by which a slot's spawner moves into the root that its
// runs share.
func (h *Host) root(plan *rootfs.Plan) *initproc.Table {
	t := initproc.New()
	t.Call("clear the umask", 0, unix.SYS_UMASK, 0)
	if h.privileged {
		t.Call("drop supplementary groups", 0, unix.SYS_SETGROUPS, 0, 0)
		t.Call("make a mount namespace", 0, unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	} else {
		t.Call("make a user namespace", 0, unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
		writeProc(t, "setgroups", "deny")
		writeProc(t, "gid_map", rootfs.IDMap(rootfs.UID, h.gid))
		writeProc(t, "uid_map", rootfs.IDMap(rootfs.UID, h.uid))
	}
	plan.Shared(t, rootfs.Options{Base: h.base, Devices: h.privileged})
	network(t)
	return t
}

// setup prepares every system call between clone and exec. The order is the
// point of this function:
//
// With real root the user namespace comes last: the mount namespace then belongs
// to the host, not to the run. Without root it comes first, because everything
// else needs the rights it gives.
//
// In both cases the workspace is filled by the run's own identity, limits and
// capabilities go after everything that needs them, and the filter is last.
func (h *Host) setup(slot *slot, s *Spec) *initproc.Request {
	t := initproc.New()
	req := &initproc.Request{Table: t, CgroupFD: slot.group.FD(), CloneFlags: unix.CLONE_NEWNS | unix.CLONE_NEWPID |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP} // the network: see network
	own := rootfs.Own{DiskBytes: s.Limits.DiskBytes, Inodes: s.Limits.Inodes}

	armDeath(t)
	t.Call("leave the session of the spawner", 0, unix.SYS_SETSID)
	preferForKilling(t)
	if h.privileged {
		req.UIDMap = rootfs.IDMap(rootfs.UID, slot.id)
		req.GIDMap = req.UIDMap
		own.Owner = slot.id
		nameHost(t)
		slot.plan.Own(t, own)
		t.Call("make the user namespace", 0, unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
		t.Maps()
		quotas(t)
		t.Call("become the run's group", 0, unix.SYS_SETRESGID, rootfs.UID, rootfs.UID, rootfs.UID)
		t.Call("become the run's user", 0, unix.SYS_SETRESUID, rootfs.UID, rootfs.UID, rootfs.UID)
		armDeath(t) // a change of identity disarms it
	} else {
		req.CloneFlags |= unix.CLONE_NEWUSER
		req.UIDMap = rootfs.IDMap(rootfs.UID, rootfs.UID)
		req.GIDMap = req.UIDMap
		req.DenySetgroups = true
		own.Owner = rootfs.UID
		t.Maps()
		quotas(t)
		nameHost(t)
		slot.plan.Own(t, own)
	}
	t.Call("set the umask", 0, unix.SYS_UMASK, 0o022)
	fill(t, s.Files)
	limits(t, s.Limits, slot.processesLimited)
	h.confine(t, slot.memoryLimited)

	t.Fork()
	last := uint64(2)
	if s.Bridge != nil {
		last = 3
	}
	for fd := uint64(0); fd <= last; fd++ {
		t.Call("hand over the streams", 0, unix.SYS_FCNTL, fd, unix.F_SETFD, 0)
	}
	t.Call("start a session", 0, unix.SYS_SETSID)
	t.Call("enter the workspace", 0, unix.SYS_CHDIR, t.String(Workspace))
	t.Call("execve "+s.Argv[0], 0, unix.SYS_EXECVE, t.String(s.Argv[0]), t.Strings(s.Argv), t.Strings(s.Env))
	return req
}

func armDeath(t *initproc.Table) {
	t.Call("arm the parent-death signal", 0, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uint64(unix.SIGKILL))
	t.Alive()
}

// preferForKilling makes every out-of-memory killer, the host's and the group's,
// choose a run before anything else, the slot's spawner too, and, where the spawner is exempt from it, ends the exemption for
// good: with the capability at hand this also sets the floor to which a program
// could lower its own score again.
func preferForKilling(t *initproc.Table) { writeProc(t, "oom_score_adj", "500") }

// writeProc writes to an entry of the calling process in the host's /proc.
func writeProc(t *initproc.Table, name, value string) {
	writeFile(t, "write "+name, "self/"+name, value)
}

// writeFile writes to an entry of the host's /proc.
func writeFile(t *initproc.Table, step, name, value string) {
	t.Call(step, initproc.Store, unix.SYS_OPENAT, initproc.ProcFD, t.String(name), unix.O_WRONLY|unix.O_CLOEXEC)
	t.Call(step, initproc.Full|initproc.Use(0), unix.SYS_WRITE, 0, t.String(value), uint64(len(value)))
	t.Call(step, initproc.Use(0), unix.SYS_CLOSE, 0)
}

// network gives the spawner a new network namespace, and brings its loopback
// interface up; it has no other. The spawner walks this once when it starts and
// again after every run, so that each run is born into a network that nothing has
// used, and none has to wait for the dearest of the namespaces. A spawner that
// fails at it is thrown away.
func network(t *initproc.Table) {
	var ifreq [40]byte
	copy(ifreq[:], "lo")
	binary.NativeEndian.PutUint16(ifreq[16:], unix.IFF_UP|unix.IFF_RUNNING)
	t.Call("make a network namespace", 0, unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	t.Call("open a socket for loopback", initproc.Store, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	t.Call("bring loopback up", initproc.Use(0), unix.SYS_IOCTL, 0, unix.SIOCSIFFLAGS, t.Bytes(ifreq[:]))
	t.Call("close the socket for loopback", initproc.Use(0), unix.SYS_CLOSE, 0)
}

// quotas bounds what a run takes of the tables that the kernel keeps per user, and
// of which the user behind the run (root, or whoever runs the engine) has one for
// everything: watches on files, and namespaces, of which a run needs none.
func quotas(t *initproc.Table) {
	for _, q := range [][2]string{
		{"max_inotify_instances", "16"}, {"max_inotify_watches", "8192"},
		{"max_user_namespaces", "0"}, {"max_net_namespaces", "0"}, {"max_mnt_namespaces", "0"},
	} {
		writeFile(t, "limit "+q[0], "sys/user/"+q[0], q[1])
	}
}

func nameHost(t *initproc.Table) {
	name := rootfs.Name
	t.Call("name the host", 0, unix.SYS_SETHOSTNAME, t.String(name), uint64(len(name)))
	t.Call("name the domain", 0, unix.SYS_SETDOMAINNAME, t.String(""), 0)
}

// fill writes the run's files into the workspace, with the run's identity.
func fill(t *initproc.Table, files []File) {
	made := map[string]bool{".": true}
	for _, f := range files {
		var missing []string
		for dir := path.Dir(f.Name); !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			missing = append(missing, dir)
		}
		for i := len(missing) - 1; i >= 0; i-- {
			t.Call(stepFill+missing[i], 0, unix.SYS_MKDIRAT, at, t.String(Workspace+"/"+missing[i]), 0o755)
		}
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		rootfs.WriteFile(t, stepFill+f.Name, Workspace+"/"+f.Name, f.Data, mode)
	}
}

// stepFill begins the name of every step that writes a run's file.
const stepFill = "write the run's "

// limits sets the resource limits that need no control group. There is none on
// address space (runtimes reserve far more than they use) and none on file size
// (the file system's size is the limit).
func limits(t *initproc.Table, l belljar.Limits, counted bool) {
	const inf = ^uint64(0)
	processes := uint64(l.Processes) + initOverhead
	if counted {
		processes += spareProcesses
	}
	for _, r := range []struct {
		name       string
		which      uint64
		soft, hard uint64
	}{
		{"processes", unix.RLIMIT_NPROC, processes, processes},
		{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles), uint64(l.OpenFiles)},
		{"core files", unix.RLIMIT_CORE, 0, 0},
		{"stack", unix.RLIMIT_STACK, 8 << 20, inf},
		{"locked memory", unix.RLIMIT_MEMLOCK, 1 << 20, 1 << 20},
		{"message queues", unix.RLIMIT_MSGQUEUE, 800 << 10, 800 << 10},
		{"pending signals", unix.RLIMIT_SIGPENDING, 1024, 1024},
		{"priority", unix.RLIMIT_NICE, 0, 0},
		{"real-time priority", unix.RLIMIT_RTPRIO, 0, 0},
	} {
		hard := min(r.hard, hardLimit(r.which))
		var v [16]byte
		binary.NativeEndian.PutUint64(v[0:], min(r.soft, hard))
		binary.NativeEndian.PutUint64(v[8:], hard)
		t.Call("limit "+r.name, 0, unix.SYS_PRLIMIT64, 0, r.which, t.Bytes(v[:]), 0)
	}
}

// hardLimit is how far the engine itself may go. A run is never given more: at
// that point it has no capability to raise anything.
func hardLimit(which uint64) uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(int(which), &l) != nil {
		return ^uint64(0)
	}
	return l.Max
}

// confine drops every capability and installs the filter. PID 1 is under both,
// like the program; it is also closed to debuggers, so that nothing of a table
// can be read from inside.
func (h *Host) confine(t *initproc.Table, memoryLimited bool) {
	for c := range uint64(h.lastCap + 1) {
		t.Call("drop a capability from the bounding set", 0, unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c)
	}
	t.Call("clear the ambient capabilities", 0, unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var header [8]byte
	binary.NativeEndian.PutUint32(header[:], unix.LINUX_CAPABILITY_VERSION_3)
	t.Call("drop all capabilities", 0, unix.SYS_CAPSET, t.Bytes(header[:]), t.Bytes(make([]byte, 24)))
	t.Call("set no_new_privs", 0, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	t.Call("close PID 1 to debuggers", 0, unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	armDeath(t)

	if !memoryLimited {
		install(t, h.noShared)
	}
	install(t, h.filter)
}

func install(t *initproc.Table, f *seccomp.Filter) {
	var prog [16]byte // struct sock_fprog
	binary.NativeEndian.PutUint16(prog[0:], uint16(f.Len()))
	binary.NativeEndian.PutUint64(prog[8:], t.Bytes(f.Bytes()))
	t.Call("install the seccomp filter", 0, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, t.Bytes(prog[:]))
}

// checkSpec refuses what would make our own hand write in the wrong place. The
// caller has checked names already, with messages for people.
func checkSpec(s *Spec) error {
	bad := func(what string, name string) error {
		return belljar.Refuse(belljar.CodeBadFileName, "Use relative names with forward slashes.", "%s %q cannot be used in a sandbox.", what, name)
	}
	for _, f := range s.Files {
		clean := path.Clean(f.Name)
		if f.Name == "" || clean != f.Name || path.IsAbs(clean) || clean == "." || clean == ".." ||
			strings.HasPrefix(clean, "../") || strings.ContainsRune(f.Name, 0) || len(f.Name) > 1024 {
			return bad("The file name", f.Name)
		}
	}
	for _, list := range [][]string{s.Argv, s.Env} {
		for _, x := range list {
			if strings.ContainsRune(x, 0) {
				return bad("The argument or variable", x)
			}
		}
	}
	if len(s.Argv) == 0 || !path.IsAbs(s.Argv[0]) {
		return bad("The program", strings.Join(s.Argv, " "))
	}
	return nil
}
