package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/cgroup"
	"github.com/belljar/belljar/internal/sandbox/rootfs"
	"github.com/belljar/belljar/internal/sandbox/seccomp"
)

// Config of the sandbox. The zero value is the documented default.
type Config struct {
	// Minimum is the weakest level a run may get when its request asks for
	// nothing: default namespaces.
	Minimum belljar.Level `toml:"minimum"`
	// CgroupParent is the control group below which runs get theirs, as a path from
	// the top of each hierarchy; default: the engine's own. When it is named and
	// cannot be used, runs are refused.
	CgroupParent string `toml:"cgroup_parent"`
	// Single says that there will be one run only, so that no slot is made ready
	// for another.
	Single bool `toml:"-"`
}

// sweepTime bounds the removal of groups that dead engines left.
const sweepTime = 5 * time.Second

// MaxSlots bounds how many runs one engine can have at once.
const MaxSlots = 60

// Host runs programs in sandboxes of this machine. It is safe for concurrent use.
type Host struct {
	cfg        Config
	privileged bool // runs are set up by the host's root
	uid, gid   int
	firstID    int
	lastCap    int
	base       string
	plan       *rootfs.Plan
	filter     *seccomp.Filter
	noShared   *seccomp.Filter                 // on top of it where memory is watched
	openGroups func() (*cgroup.Manager, error) // once, beside Open

	tokens chan struct{}  // one per run at once
	after  sync.WaitGroup // slots being settled, and the sweep

	first    func() (*slot, error) // the slot that Open begins to make; once
	sweep    sync.Once
	sweepErr error // read after the sweep has ended

	mu     sync.Mutex
	free   []*slot // the most recently used last
	used   [MaxSlots]bool
	closed bool
	// firstTaken says that the slot which Open began to make has gone to a run.
	firstTaken bool
}

// Open prepares what all runs share, and begins to make the first slot.
func Open(cfg Config) (*Host, error) {
	if cfg.Minimum == "" {
		cfg.Minimum = belljar.LevelNamespaces
	}
	if cfg.Minimum.Rank() < 0 {
		return nil, belljar.Refuse(belljar.CodeBadConfig, "Use process, landlock, namespaces or gvisor.", "There is no isolation level %q.", cfg.Minimum)
	}
	h := &Host{cfg: cfg, uid: os.Getuid(), gid: os.Getgid(), tokens: make(chan struct{}, MaxSlots)}
	var err error
	if h.plan, err = rootfs.New("/"); err != nil {
		return nil, err
	}
	if h.filter, err = seccomp.Compile(runtime.GOARCH, seccomp.Default); err != nil {
		return nil, err
	}
	if h.noShared, err = seccomp.Compile(runtime.GOARCH, seccomp.NoSharedMemory); err != nil {
		return nil, err
	}
	if h.lastCap, err = lastCapability(); err != nil {
		return nil, err
	}
	for _, dir := range []string{"/tmp", "/var", "/usr"} {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			h.base = dir
			break
		}
	}
	ids, err := mappedIDs()
	if err != nil {
		return nil, err
	}
	h.privileged = os.Geteuid() == 0 && ids.length > 2*MaxSlots
	h.firstID = ids.choose(os.Getpid())
	if p := cfg.CgroupParent; p != "" && (!path.IsAbs(p) || path.Clean(p) != p) {
		return nil, badParent(p, "it is no path from the top of a hierarchy")
	}
	h.openGroups = sync.OnceValues(func() (*cgroup.Manager, error) {
		return cgroup.Open(cgroup.Config{Parent: cfg.CgroupParent})
	})
	// The first slot is made beside whatever comes before the first run.
	h.used[0] = true
	h.first = sync.OnceValues(func() (*slot, error) { return h.newSlot(0) })
	h.after.Go(func() { _, _ = h.first() }) // whoever takes it gets the error
	return h, nil
}

// idRange is the host ids that this process can hand out.
type idRange struct{ first, length int }

// choose picks the first of MaxSlots ids for an engine with the given process
// id. On a host with all ids they come from a range that no distribution,
// container manager or directory service hands out (above systemd's container
// range, below its foreign range), and two living engines never share one. In
// a container with few ids they come from the end of what it has.
func (r idRange) choose(pid int) int {
	const first, last = 0x70000000, 0x7ffd0000
	if r.first == 0 && r.length > last {
		return first + pid%((last-first)/MaxSlots)*MaxSlots
	}
	return r.first + r.length - MaxSlots
}

func mappedIDs() (idRange, error) {
	raw, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return idRange{}, fmt.Errorf("read which ids there are: %w", err)
	}
	var best idRange
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(f[0])
		length, err2 := strconv.Atoi(f[2])
		if errors.Join(err1, err2) == nil && length > best.length {
			best = idRange{first, length}
		}
	}
	return best, nil
}

func lastCapability() (int, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0, fmt.Errorf("read the number of capabilities: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}

// errClosed is given to runs that come after Close.
var errClosed = errors.New("the sandbox host is closed")

// acquire takes a slot whose shared root fits, or makes one, in place of a free
// slot with another root where there are too many.
func (h *Host) acquire(ctx context.Context, spec *Spec) (*slot, error) {
	select {
	case h.tokens <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	key := rootKey(spec)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		<-h.tokens
		return nil, errClosed
	}
	for i := len(h.free) - 1; i >= 0; i-- {
		if s := h.free[i]; s.key == key {
			h.free = slices.Delete(h.free, i, i+1)
			h.mu.Unlock()
			return s, nil
		}
	}
	make := h.first
	index := 0
	var old *slot
	if h.firstTaken {
		if index = slices.Index(h.used[:], false); index < 0 {
			// A token was to be had, so not all slots are running: one is free.
			old, h.free = h.free[0], h.free[1:]
			index = old.id - h.firstID
		}
		make = func() (*slot, error) { return h.newSlot(index) }
	}
	h.firstTaken = true
	h.used[index] = true
	h.mu.Unlock()
	if old != nil {
		_ = old.close() // what it leaves is swept by the next start
	}
	s, err := make()
	if err == nil {
		if err = h.settleInto(s, spec); err == nil {
			return s, nil
		}
		_ = s.close()
	}
	h.giveUp(index)
	return nil, err
}

func (h *Host) giveUp(index int) {
	h.mu.Lock()
	h.used[index] = false
	h.mu.Unlock()
	<-h.tokens
}

// sweepLater removes the groups that killed engines left behind (their processes
// and mounts went with them). It is called while the first program runs, when there
// is nothing else to do.
func (h *Host) sweepLater() {
	h.sweep.Do(func() {
		h.after.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
			defer cancel()
			groups, err := h.openGroups()
			if err == nil {
				_, err = groups.Sweep(ctx)
			}
			h.sweepErr = err
		})
	})
}

// release takes a slot back once its run has left it, off the caller's path.
func (h *Host) release(s *slot, settled func() bool) {
	h.after.Add(1)
	go func() {
		defer h.after.Done()
		ok := settled()
		h.mu.Lock()
		keep := ok && !h.closed
		if keep {
			h.free = append(h.free, s)
		}
		h.mu.Unlock()
		if keep {
			<-h.tokens
			return
		}
		// An error here leaves a group behind that the next start sweeps.
		_ = s.close()
		h.giveUp(s.id - h.firstID)
	}()
}

// Close ends all spawners and removes the control groups. Runs must have ended.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	free := h.free
	if !h.firstTaken {
		if s, err := h.first(); err == nil {
			free = append(free, s)
		}
	}
	h.free, h.firstTaken = nil, true
	h.mu.Unlock()
	var errs []error
	for _, s := range free {
		errs = append(errs, s.close())
	}
	h.after.Wait()
	errs = append(errs, h.sweepErr)
	if groups, err := h.openGroups(); err == nil {
		errs = append(errs, groups.Close())
	}
	return errors.Join(errs...)
}
