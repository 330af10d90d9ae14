//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/belljar/belljar"
)

// Config says where groups are made. Its zero value is right for every host.
type Config struct {
	// Parent is the group that ours are made in, from the top of each hierarchy
	// ("/belljar.slice"); it must exist in those that are to be used. Default: our
	// own group, so that what limits us limits the runs too; where that is not
	// writable (version 2: not delegated to us), the top of the hierarchy.
	Parent string `toml:"parent"`
	// Root stands in for /sys/fs/cgroup, ProcSelf for /proc/self.
	Root     string `toml:"-"`
	ProcSelf string `toml:"-"`
}

// Protections as they are named in [belljar.Isolation].
const (
	ProtectMemory = "memory_cgroup"
	ProtectPids   = "pids_cgroup"
)

// ErrClosed is returned by a closed Manager or Slot.
var ErrClosed = errors.New("control groups closed")

// Manager makes slots. All its methods may be called at once.
type Manager struct {
	cfg         Config
	ops         *ops
	self        owner
	hierarchies []*hierarchy
	v2          *place   // nil where there is none, or none that we may use
	v1          []*place // those with a controller that version 2 does not give us
	why         reasons  // by controller: why it cannot be used

	mu     sync.Mutex
	closed bool
	slots  map[*Slot]struct{}
	last   int // number of the newest slot
}

// Open looks for control groups and makes our own beneath them. That there are
// none, or that we may not use them, is no error: [Manager.Missing] reports it.
// An error means that cfg is wrong.
func Open(cfg Config) (*Manager, error) { return open(cfg, kernelOps()) }

func open(cfg Config, o *ops) (*Manager, error) {
	if cfg.Parent != "" && (!path.IsAbs(cfg.Parent) || path.Clean(cfg.Parent) != cfg.Parent) {
		return nil, fmt.Errorf("control group parent %q: want a path from the top of the hierarchy, like /belljar.slice", cfg.Parent)
	}
	m := &Manager{cfg: cfg, ops: o, why: reasons{}, slots: map[*Slot]struct{}{}}
	var err error
	if m.self, err = selfOwner(); err == nil {
		m.hierarchies, err = findHierarchies(cfg)
	}
	if err != nil {
		for _, c := range wanted {
			m.why.add(c, err)
		}
		return m, nil
	}
	for _, h := range m.hierarchies { // version 2 comes first
		if h.v2 {
			m.v2 = o.placeV2(h, m.self, cfg.Parent, m.why)
			continue
		}
		var lack []string
		for _, c := range h.controllers {
			// Version 2 counts processor time without a controller, so cpuacct
			// alone is never a reason to be in two trees.
			if !m.Has(c) && !(c == "cpuacct" && m.v2.has("memory")) {
				lack = append(lack, c)
			}
		}
		if len(lack) == 0 {
			continue
		}
		if p := o.placeV1(h, m.self, cfg.Parent, lack, m.why); p != nil {
			m.v1 = append(m.v1, p)
		}
	}
	for _, c := range wanted {
		if !m.Has(c) && m.why[c] == nil {
			m.why.add(c, m.absent(c))
		}
	}
	return m, nil
}

// absent explains a controller that no hierarchy has.
func (m *Manager) absent(controller string) error {
	if len(m.hierarchies) == 0 {
		return errors.New("no control group file system is mounted")
	}
	return fmt.Errorf("no mounted control group hierarchy has the %s controller", controller)
}

func (m *Manager) placeOf(controller string) *place {
	if m.v2.has(controller) {
		return m.v2
	}
	for _, p := range m.v1 {
		if p.has(controller) {
			return p
		}
	}
	return nil
}

// Has reports whether a controller (memory, pids, cpu) can be used: a group was
// made and a limit set in it.
func (m *Manager) Has(controller string) bool { return m.placeOf(controller) != nil }

// Version is that of the tree that has the memory controller, 1 or 2; 0 when
// memory cannot be limited.
func (m *Manager) Version() int {
	switch p := m.placeOf("memory"); {
	case p == nil:
		return 0
	case p.h.v2:
		return 2
	}
	return 1
}

// Missing lists the protections that control groups cannot give here, each with
// its exact reason.
func (m *Manager) Missing() []belljar.Missing {
	var out []belljar.Missing
	for _, x := range []struct{ controller, protection string }{{"memory", ProtectMemory}, {"pids", ProtectPids}} {
		if !m.Has(x.controller) {
			out = append(out, belljar.Missing{Protection: x.protection, Reason: m.reason(x.controller)})
		}
	}
	return out
}

func (m *Manager) places() []*place {
	out := slices.Clone(m.v1)
	if m.v2 != nil {
		out = append(out, m.v2)
	}
	return out
}

// NewSlot makes a slot with its groups. Without any usable hierarchy the slot is
// one that limits and counts nothing; see [Manager.Has].
func (m *Manager) NewSlot() (*Slot, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, ErrClosed
	}
	m.last++
	s := &Slot{m: m, name: fmt.Sprintf("slot-%d", m.last), oom: make(chan struct{}, 1), stop: make(chan struct{})}
	m.slots[s] = struct{}{}
	// Close must not find a slot that is half made.
	s.life.Lock()
	m.mu.Unlock()
	defer s.life.Unlock()

	if err := s.build(); err != nil {
		err = fmt.Errorf("make control groups of %s: %w", s.name, err)
		return nil, errors.Join(err, s.destroy())
	}
	return s, nil
}

func (m *Manager) forget(s *Slot) {
	m.mu.Lock()
	delete(m.slots, s)
	m.mu.Unlock()
}

// Close closes the slots that are still open and removes all groups of this
// manager.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	left := make([]*Slot, 0, len(m.slots))
	for s := range m.slots {
		left = append(left, s)
	}
	m.mu.Unlock()

	var errs []error
	for _, s := range left {
		errs = append(errs, s.Close())
	}
	for _, p := range m.places() {
		errs = append(errs, m.ops.abandon(p))
	}
	return errors.Join(errs...)
}
