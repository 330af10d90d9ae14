package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/cgroup"
	"github.com/belljar/belljar/internal/sandbox/initproc"
	"github.com/belljar/belljar/internal/sandbox/rootfs"
	"golang.org/x/sys/unix"
)

// slot is the place of one run at a time: a spawner in the root that its runs
// share, a control group in which it lives (so that every run is born in it and
// none is ever moved), and a host id.
type slot struct {
	id      int    // host user and group of its runs, when privileged
	key     string // of the shared root, see rootKey; empty: it has none yet
	plan    *rootfs.Plan
	spawner *initproc.Spawner
	group   *cgroup.Slot // does nothing where there are no control groups

	memoryLimited, processesLimited bool // by the group
	missing                         []belljar.Missing
	single                          bool // for one run
	killed                          bool // its group was, see run.end
}

// newSlot makes a slot without a root: its spawner runs, in its control group.
func (h *Host) newSlot(index int) (s *slot, err error) {
	s = &slot{id: h.firstID + index, single: h.cfg.Single}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	// The spawner starts while its groups are made.
	started := make(chan error, 1)
	go func() {
		var err error
		s.spawner, err = initproc.Start(nil)
		started <- err
	}()
	err = s.makeGroups(h)
	if err = errors.Join(<-started, err); err != nil {
		return s, err
	}
	s.protect()
	err = s.group.EnterBy(s.spawner.PID(), func(tasks []string) error {
		t := &initproc.Table{}
		for _, file := range tasks {
			t.Call("enter "+file, initproc.Store, unix.SYS_OPENAT, at, t.String(file), unix.O_WRONLY|unix.O_CLOEXEC)
			t.Call("enter "+file, initproc.Full|initproc.Use(0), unix.SYS_WRITE, 0, t.String("0"), 1)
			t.Call("enter "+file, initproc.Use(0), unix.SYS_CLOSE, 0)
		}
		return s.spawner.Walk(t)
	})
	return s, err
}

// makeGroups makes the slot's control groups.
func (s *slot) makeGroups(h *Host) error {
	groups, err := h.openGroups()
	if err != nil {
		return err
	}
	// Whoever names a group means its limits: to run without them would be weaker
	// than asked.
	s.missing = groups.Missing()
	if h.cfg.CgroupParent != "" && len(s.missing) > 0 {
		return badParent(h.cfg.CgroupParent, s.missing[0].Reason)
	}
	s.memoryLimited, s.processesLimited = groups.Has("memory"), groups.Has("pids")
	s.group, err = groups.NewSlot()
	return err
}

func badParent(parent, reason string) error {
	return belljar.Refuse(belljar.CodeBadConfig,
		"Name a group that is there in every hierarchy and that this user may fill, from the top of the hierarchy (/belljar), or leave the key out.",
		"sandbox.cgroup_parent: runs cannot be limited by groups in %q: %s.", parent, reason)
}

// settleInto moves a new slot into the root that a run needs.
func (h *Host) settleInto(s *slot, spec *Spec) (err error) {
	assets := make(map[string][]byte, len(spec.Assets))
	for _, f := range spec.Assets {
		assets[f.Name] = f.Data
	}
	if s.plan, err = h.plan.With(spec.Toolchain, assets); err != nil {
		return err
	}
	if err := s.spawner.Walk(h.root(s.plan)); err != nil {
		return h.explain(err)
	}
	s.key = rootKey(spec)
	return nil
}

// protect keeps the spawner, which shares its group with the run, from being
// chosen when the run meets its memory limit. The kernel grants that only with
// CAP_SYS_RESOURCE; without it the spawner is merely the smallest process of the
// group, and a run that outlives it ends with it. Its children give the exemption
// up, see preferForKilling.
func (s *slot) protect() {
	_ = os.WriteFile("/proc/"+strconv.Itoa(s.spawner.PID())+"/oom_score_adj", []byte("-1000"), 0)
}

// rootKey names the shared root that a run needs: its toolchain and its assets.
func rootKey(s *Spec) string {
	sum := sha256.New()
	for _, dir := range s.Toolchain {
		fmt.Fprintf(sum, "%q\n", dir)
	}
	for _, f := range s.Assets {
		fmt.Fprintf(sum, "%q %d\n", f.Name, len(f.Data))
		sum.Write(f.Data)
	}
	return string(sum.Sum(nil))
}

// settle waits until nothing of the last run is left and says whether the slot
// can serve another.
func (s *slot) settle(p *initproc.Process) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	select {
	case <-p.Reaped():
	case <-ctx.Done():
		return false
	}
	if s.single || s.killed {
		return false
	}
	next := &initproc.Table{}
	network(next)
	if s.spawner.Walk(next) != nil {
		return false
	}
	clean, err := s.group.Idle(ctx)
	return clean && err == nil
}

func (s *slot) close() error {
	var errs []error
	if s.spawner != nil {
		errs = append(errs, s.spawner.Close())
	}
	if s.group != nil {
		errs = append(errs, s.group.Close())
	}
	return errors.Join(errs...)
}
