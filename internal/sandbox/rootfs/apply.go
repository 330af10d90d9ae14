package rootfs

import (
	"encoding/binary"
	"fmt"
	"path"
	"strconv"

	"github.com/belljar/belljar/internal/sandbox/initproc"
	"golang.org/x/sys/unix"
)

// Options are what a plan leaves open.
type Options struct {
	// Devices says that device nodes can be made (real root); otherwise the host's
	// are bound, and the host's /proc is too, because the kernel gives an ordinary
	// user a new /proc only where a whole one can be seen already.
	Devices bool
	// Base is a host folder over which the new root is mounted for a moment.
	Base string
}

const (
	hostTree = "/.host" // the old root, until it is detached
	rootSize = "size=8m,nr_inodes=2048,mode=0755"
)

// builder adds calls to a table.
type builder struct {
	t   *initproc.Table
	opt Options
}

// Shared adds the calls that make the plan the root of the calling process. They
// need a mount namespace of their own, CAP_SYS_ADMIN over it and a umask of 0;
// afterwards the working directory is the new root.
func (p *Plan) Shared(t *initproc.Table, opt Options) {
	b := &builder{t: t, opt: opt}
	b.mount("make mounts private", "none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	b.mount("mount the new root", "tmpfs", opt.Base, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, rootSize)
	t.Call("enter the new root", 0, unix.SYS_CHDIR, t.String(opt.Base))
	b.mkdir(hostTree[1:], 0o700)
	t.Call("pivot_root", 0, unix.SYS_PIVOT_ROOT, t.String("."), t.String(hostTree[1:]))
	t.Call("enter the new root", 0, unix.SYS_CHDIR, t.String("/"))
	for _, s := range p.Steps {
		b.step(s)
	}
	t.Call("detach the host's tree", 0, unix.SYS_UMOUNT2, t.String(hostTree), unix.MNT_DETACH)
	t.Call("forget the host's tree", 0, unix.SYS_UNLINKAT, at, t.String(hostTree), unix.AT_REMOVEDIR)
	b.setattr("make the root read-only", "/", false, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}

// Own is what one run gets for itself.
type Own struct {
	DiskBytes int64 // all that can be written: workspace, /tmp and /dev/shm together
	Inodes    int64
	Owner     int // the id, as the mounting process sees it, that gets the workspace
}

// Own adds the calls that give a run its writable file system and its /proc, in a
// mount namespace of its own. The tmpfs is mounted on /tmp, its folders are shown
// at their places, and last its folder for /tmp covers it: nothing has to be
// unmounted, which would cost an RCU grace period.
func (p *Plan) Own(t *initproc.Table, own Own) {
	b := &builder{t: t}
	opts := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0755", own.DiskBytes, own.Inodes)
	b.mount("mount the workspace", "tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, opts)
	for _, v := range []struct {
		source, target string
		mode           uint64
	}{{"/tmp/workspace", "/workspace", 0o755}, {"/tmp/shm", "/dev/shm", 0o1777}, {"/tmp/tmp", "/tmp", 0o1777}} {
		b.mkdir(v.source, v.mode)
		if v.target == "/workspace" {
			id := uint64(own.Owner)
			t.Call("give the workspace to the run", 0, unix.SYS_FCHOWNAT, at, t.String(v.source), id, id, 0)
		}
		b.mount("show "+v.target, v.source, v.target, "", unix.MS_BIND, "")
	}
	made := map[string]bool{"/tmp": true}
	for _, l := range p.Late {
		b.mkdirs(l.Target, made)
		b.mount("bind "+l.Target, l.Source, l.Target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	b.mount("mount /proc", "proc", "/proc", "proc", flags|unix.MS_RDONLY, "")
	for _, m := range p.Masks {
		if m.IsDir {
			b.mount("mask "+m.Target, "tmpfs", m.Target, "tmpfs", flags|unix.MS_RDONLY, "size=0,nr_inodes=1")
		} else {
			b.mount("mask "+m.Target, "/dev/null", m.Target, "", unix.MS_BIND, "")
		}
	}
}

// at is AT_FDCWD as an argument.
const at = ^uint64(99)

func (b *builder) step(s Step) {
	t := b.t
	switch s.Op {
	case OpDir:
		b.mkdir(s.Target, 0o755)
	case OpLink:
		t.Call("link "+s.Target, 0, unix.SYS_SYMLINKAT, t.String(s.Source), at, t.String(s.Target))
	case OpFile:
		WriteFile(t, "write "+s.Target, s.Target, s.Data, 0o444)
	case OpBind:
		b.bind(s, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	case OpDevice:
		b.device(s)
	case OpProc:
		if !b.opt.Devices {
			b.mount("keep /proc in sight", hostTree+s.Target, s.Target, "", unix.MS_BIND|unix.MS_REC, "")
			b.setattr("make the host's /proc read-only", s.Target, true,
				unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		}
	}
}

func (b *builder) bind(s Step, attr uint64) {
	if !s.IsDir {
		b.t.Call("make "+s.Target, 0, unix.SYS_MKNODAT, at, b.t.String(s.Target), unix.S_IFREG|0o444, 0)
	}
	// Recursive, because a part of a host's tree may be a mount of its own, and an
	// unprivileged process may not bind the tree without it.
	b.mount("bind "+s.Target, hostTree+s.Source, s.Target, "", unix.MS_BIND|unix.MS_REC, "")
	b.setattr("make "+s.Target+" read-only", s.Target, true, attr)
}

func (b *builder) device(s Step) {
	if !b.opt.Devices {
		b.bind(s, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		return
	}
	minor := map[string]uint32{"/dev/null": 3, "/dev/zero": 5, "/dev/full": 7, "/dev/random": 8, "/dev/urandom": 9}[s.Source]
	b.t.Call("make "+s.Target, 0, unix.SYS_MKNODAT, at, b.t.String(s.Target), unix.S_IFCHR|0o666, unix.Mkdev(1, minor))
}

func (b *builder) mkdir(name string, mode uint64) {
	b.t.Call("make "+name, 0, unix.SYS_MKDIRAT, at, b.t.String(name), mode)
}

func (b *builder) mkdirs(name string, made map[string]bool) {
	if made[name] {
		return
	}
	b.mkdirs(path.Dir(name), made)
	made[name] = true
	b.mkdir(name, 0o755)
}

func (b *builder) mount(step, source, target, fstype string, flags uintptr, data string) {
	t := b.t
	var kind, opts uint64
	if fstype != "" {
		kind = t.String(fstype)
	}
	if data != "" {
		opts = t.String(data)
	}
	t.Call(step, 0, unix.SYS_MOUNT, t.String(source), t.String(target), kind, uint64(flags), opts)
}

func (b *builder) setattr(step, target string, recursive bool, set uint64) {
	attr := make([]byte, 32) // struct mount_attr: set, clear, propagation, userns
	binary.NativeEndian.PutUint64(attr, set)
	var flags uint64
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	b.t.Call(step, 0, unix.SYS_MOUNT_SETATTR, at, b.t.String(target), flags, b.t.Bytes(attr), uint64(len(attr)))
}

// WriteFile adds the calls that make one new file, never through a link. They
// use the table's kept result.
func WriteFile(t *initproc.Table, step, name string, data []byte, mode uint32) {
	flags := uint64(unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC)
	t.Call(step, initproc.Store, unix.SYS_OPENAT, at, t.String(name), flags, uint64(mode))
	if len(data) > 0 {
		t.Call(step, initproc.Full|initproc.Use(0), unix.SYS_WRITE, 0, t.Bytes(data), uint64(len(data)))
	}
	t.Call(step, initproc.Use(0), unix.SYS_CLOSE, 0)
}

// IDMap is one line of an id map: a single id.
func IDMap(inside, outside int) string {
	return strconv.Itoa(inside) + " " + strconv.Itoa(outside) + " 1"
}
