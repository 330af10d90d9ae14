package rootfs

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belljar/belljar"
)

// Op is a kind of step.
type Op uint8

const (
	OpDir    Op = iota // a folder in the root
	OpLink             // a symbolic link
	OpFile             // a read-only file with content
	OpBind             // a host folder or file, read-only, nosuid, nodev
	OpDevice           // a host device node
	OpProc             // the host's /proc, to be covered by the run's own
)

// Step is one thing to be made. Target is absolute and clean.
type Step struct {
	Op     Op
	Target string
	Source string // host path (OpBind, OpDevice) or link text (OpLink)
	Data   []byte // OpFile
	IsDir  bool   // OpBind
}

// Plan is the shared root of runs, in the order of making.
type Plan struct {
	Steps []Step
	// Late are toolchain folders below /tmp: the run's own /tmp would cover them, so
	// the shared root has them elsewhere and Own shows them again.
	Late []Step
	// Masks are the files and folders of a run's own /proc that are hidden.
	Masks []Mask
	made  map[string]bool // folders that exist by then
	bound []string
}

// Mask is one entry of /proc to be hidden.
type Mask struct {
	Target string
	IsDir  bool
}

// Identity of the program inside every sandbox.
const (
	UID  = 1000
	Name = "belljar"
)

const passwd = "root:x:0:0:root:/:/usr/sbin/nologin\n" +
	"belljar:x:1000:1000:belljar:/workspace:/bin/sh\n" +
	"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"

const group = "root:x:0:\nbelljar:x:1000:\nnogroup:x:65534:\n"

const hosts = "127.0.0.1 localhost belljar\n::1 localhost ip6-localhost ip6-loopback\n"

// What the dynamic linker, TLS libraries and Debian's alternatives look up. They
// are bound from the host when they are there, and nothing else of /etc is.
var etcBinds = []string{"/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs"}

// Entries of /proc that tell about the host or reach into the kernel: what OCI
// runtimes mask, and what shows other users' keys and the kernel's symbols. All of
// /proc is read-only besides, and what only the host's root may read stays closed
// by its mode, because a run never has the host's root.
var procMasks = []string{
	"acpi", "asound", "interrupts", "kallsyms", "kcore", "key-users", "keys", "latency_stats",
	"modules", "sched_debug", "scsi", "timer_list", "timer_stats",
}

// New makes the plan that every run shares: it looks at the host's layout once.
// Host is the root of the tree to look at, "/" but in tests.
func New(host string) (*Plan, error) {
	p := &Plan{made: map[string]bool{"/": true}}
	if _, err := os.Stat(filepath.Join(host, "usr")); err != nil {
		return nil, fmt.Errorf("look at the host's /usr: %w", err)
	}
	p.bind("/usr", true)
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		fi, err := os.Lstat(filepath.Join(host, name))
		switch {
		case err != nil:
		case fi.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(filepath.Join(host, name))
			if err != nil {
				return nil, fmt.Errorf("read the host's %s: %w", name, err)
			}
			p.add(Step{Op: OpLink, Target: name, Source: to})
		case fi.IsDir():
			p.bind(name, true)
		}
	}
	p.file("/etc/passwd", passwd)
	p.file("/etc/group", group)
	p.file("/etc/hosts", hosts)
	p.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
	p.file("/etc/resolv.conf", "# there is no network here\n")
	p.add(Step{Op: OpLink, Target: "/etc/localtime", Source: "/usr/share/zoneinfo/UTC"})
	for _, name := range etcBinds {
		if fi, err := os.Stat(filepath.Join(host, name)); err == nil {
			p.bind(name, fi.IsDir())
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		p.add(Step{Op: OpDevice, Target: "/dev/" + name, Source: "/dev/" + name})
	}
	for _, l := range [][2]string{{"fd", ""}, {"stdin", "/0"}, {"stdout", "/1"}, {"stderr", "/2"}} {
		p.add(Step{Op: OpLink, Target: "/dev/" + l[0], Source: "/proc/self/fd" + l[1]})
	}
	p.dir("/workspace")
	p.dir("/tmp")
	p.dir("/dev/shm")
	p.dir("/proc")
	p.add(Step{Op: OpProc, Target: "/proc"})
	for _, name := range procMasks {
		if fi, err := os.Stat(filepath.Join(host, "proc", name)); err == nil {
			p.Masks = append(p.Masks, Mask{"/proc/" + name, fi.IsDir()})
		}
	}
	return p, nil
}

// With adds what the runs of one kind need: their toolchain's folders and assets.
func (p *Plan) With(toolchain []string, assets map[string][]byte) (*Plan, error) {
	q := &Plan{Steps: slices.Clip(p.Steps), Masks: p.Masks, made: p.made, bound: p.bound}
	if len(toolchain)+len(assets) == 0 {
		return q, nil
	}
	q.made = make(map[string]bool, len(p.made)+8)
	for k := range p.made {
		q.made[k] = true
	}
	q.bound = slices.Clip(p.bound)
	for _, dir := range toolchain {
		if err := checkToolchain(dir); err != nil {
			return nil, err
		}
		switch {
		case q.covered(dir):
		case strings.HasPrefix(dir, "/tmp/"):
			at := fmt.Sprintf("/opt/belljar/toolchain/%d", len(q.Late))
			q.dir(at)
			q.add(Step{Op: OpBind, Target: at, Source: dir, IsDir: true})
			q.Late = append(q.Late, Step{Op: OpBind, Target: dir, Source: at, IsDir: true})
		default:
			q.bind(dir, true)
		}
	}
	names := make([]string, 0, len(assets))
	for name := range assets {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if path.Clean(name) != name || !strings.HasPrefix(name, "/opt/belljar/") || strings.ContainsRune(name, 0) {
			return nil, fmt.Errorf("asset %q is not beneath /opt/belljar", name)
		}
		q.file(name, string(assets[name]))
	}
	return q, nil
}

// covered says that a folder can already be seen.
func (p *Plan) covered(dir string) bool {
	for _, b := range p.bound {
		if dir == b || strings.HasPrefix(dir, b+"/") {
			return true
		}
	}
	return false
}

// Folders that hold more than a toolchain. A toolchain's folder may lie beneath
// one of them but may never be one, nor anything above one.
var tooMuch = []string{
	"/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/srv",
	"/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp", "/workspace",
}

// checkToolchain keeps a home, or what is above one, from being bound by a
// configuration that names a wrong folder.
func checkToolchain(dir string) error {
	refuse := func(why string) error {
		return belljar.Refuse(belljar.CodeNoToolchain, "Name a folder that holds the toolchain alone.",
			"The toolchain folder %q cannot be shown to a run: %s.", dir, why)
	}
	switch {
	case !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsRune(dir, 0):
		return refuse("it is not an absolute, clean path")
	case slices.Contains(tooMuch, dir):
		return refuse("it holds more than a toolchain")
	case strings.HasPrefix(dir, "/proc/") || strings.HasPrefix(dir, "/sys/") || strings.HasPrefix(dir, "/dev/") || strings.HasPrefix(dir, "/workspace/"):
		return refuse("it lies in a place that a run has of its own")
	case path.Dir(dir) == "/home":
		return refuse("it is a home")
	}
	if home, err := os.UserHomeDir(); err == nil && (home == dir || strings.HasPrefix(home, dir+"/")) {
		return refuse("it holds a home")
	}
	return nil
}

func (p *Plan) add(s Step) {
	if s.Target != "" {
		p.dir(path.Dir(s.Target))
	}
	p.Steps = append(p.Steps, s)
}

// dir makes a folder and those above it, once. Nothing is made inside what is
// bound: it is there already, and read-only.
func (p *Plan) dir(name string) {
	if p.made[name] || p.covered(name) {
		return
	}
	p.dir(path.Dir(name))
	p.made[name] = true
	p.Steps = append(p.Steps, Step{Op: OpDir, Target: name})
}

func (p *Plan) file(name, data string) {
	p.add(Step{Op: OpFile, Target: name, Data: []byte(data)})
}

func (p *Plan) bind(name string, isDir bool) {
	if isDir {
		p.dir(name)
	}
	p.add(Step{Op: OpBind, Target: name, Source: name, IsDir: isDir})
	if isDir {
		p.bound = append(p.bound, name)
	}
}
