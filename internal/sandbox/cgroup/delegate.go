//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// standing is what decides whether a version 2 group was handed to us, so that
// we may enable controllers in it.
type standing struct {
	configured bool // the operator named it
	top        bool // it is the root of the hierarchy as we see it
	namespaced bool // it is the root of a cgroup namespace, not of the host
	marked     bool // systemd's Delegate=yes leaves an extended attribute
	owned      bool // its folder belongs to our user, who is not root
	writable   bool // we may make groups in it and move processes into it
}

// delegated follows the kernel's document (cgroup-v2.rst, "Delegation"): a group
// is handed over by ownership of its folder and files, or by a cgroup namespace.
// Root owns everything, so there it takes systemd's mark.
func (s standing) delegated() bool {
	return s.writable && (s.configured || s.namespaced || s.marked || s.owned)
}

// usable reports whether we may make groups in it at all: a group handed to us,
// or the top of the host's tree, which is no service's own.
func (s standing) usable() bool { return s.delegated() || s.writable && s.top }

func (o *ops) standing(h *hierarchy, group string, configured bool) (standing, error) {
	dir := h.path(group)
	s := standing{configured: configured, top: group == "/"}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return s, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	s.owned = o.owned(st.Uid)
	if s.top {
		// Only the true root group has no type.
		_, err := os.Lstat(filepath.Join(dir, "cgroup.type"))
		s.namespaced = err == nil
	}
	for _, attr := range []string{"trusted.delegate", "user.delegate"} {
		var buf [8]byte
		if n, err := unix.Lgetxattr(dir, attr, buf[:]); err == nil && string(buf[:n]) == "1" {
			s.marked = true
		}
	}
	for _, f := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if err := unix.Access(f, unix.W_OK); err != nil {
			return s, &fs.PathError{Op: "write to", Path: f, Err: err}
		}
	}
	s.writable = true
	return s, nil
}

// placeV2 makes our group in the version 2 hierarchy, and enables in it what the
// parent offers. It returns a place without controllers where the tree has none:
// such a group still ends a run in one step.
func (o *ops) placeV2(h *hierarchy, self owner, parent string, why reasons) *place {
	own := h.own
	if _, part, ok := parseGroupName(path.Base(own)); ok && part == leafName {
		own = path.Dir(own) // we, or a parent of ours, moved there before
	}
	candidates := []string{own, "/"}
	if parent != "" {
		candidates = []string{parent}
	}
	var failed error
	for _, group := range slices.Compact(candidates) {
		s, err := o.standing(h, group, parent != "")
		switch {
		case err != nil:
			failed = errors.Join(failed, explain(err))
			continue
		case !s.usable():
			failed = errors.Join(failed, fmt.Errorf("the group %s is not delegated to us", h.path(group)))
			continue
		}
		p := &place{h: h, parent: h.path(group)}
		missing := reasons{}
		enabled := o.enable(p, self, s, missing)
		c, err := o.claim(self, p.parent, "")
		if err != nil {
			failed = errors.Join(failed, explain(err), o.leaveLeaf(p))
			continue
		}
		p.group = c
		enabled = o.passOn(c.dir, enabled, missing)
		p.controllers = o.prove(c.dir, true, enabled, missing)
		if err := h.reachable(group); err != nil {
			failed = errors.Join(failed, err, o.abandon(p))
			continue
		}
		for c, err := range missing {
			why.add(c, err)
		}
		return p
	}
	for _, c := range h.controllers {
		why.add(c, failed)
	}
	return nil
}

// enable sees to it that the children of p.parent have the controllers, and
// returns those that they have.
func (o *ops) enable(p *place, self owner, s standing, why reasons) []string {
	var have, lack []string
	offered, err := readControllers(filepath.Join(p.parent, "cgroup.controllers"))
	if err == nil {
		have, err = readControllers(filepath.Join(p.parent, "cgroup.subtree_control"))
	}
	if err != nil {
		for _, c := range p.h.controllers {
			why.add(c, err)
		}
		return nil
	}
	for _, c := range p.h.controllers {
		switch {
		case slices.Contains(have, c):
		case slices.Contains(offered, c):
			lack = append(lack, c)
		default:
			why.add(c, fmt.Errorf("the %s controller is not delegated to the group %s", c, p.parent))
		}
	}
	if len(lack) == 0 {
		return have
	}
	refuse := func(err error) []string {
		for _, c := range lack {
			why.add(c, err)
		}
		return have
	}
	if !s.delegated() {
		return refuse(fmt.Errorf("not enabled for the children of %s, which is not delegated to us", p.parent))
	}
	// The true root may hold processes beside limited children, no other group.
	if !s.top || s.namespaced {
		if err := o.enterLeaf(p, self); err != nil {
			return refuse(err)
		}
	}
	for _, c := range lack {
		if err := o.writeFile(filepath.Join(p.parent, "cgroup.subtree_control"), "+"+c); err != nil {
			why.add(c, fmt.Errorf("enable it for the children of %s: %w", p.parent, err))
			continue
		}
		p.enabled = append(p.enabled, c)
		have = append(have, c)
	}
	if len(p.enabled) == 0 {
		if err := o.leaveLeaf(p); err != nil {
			why.add(lack[0], err)
		}
	}
	return have
}

// enterLeaf makes p.parent free of processes, if we are the only one in it.
func (o *ops) enterLeaf(p *place, self owner) error {
	pids, err := readPids(p.parent)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return nil
	}
	if len(pids) > 1 || pids[0] != self.pid {
		return fmt.Errorf("the group %s holds %d other processes, and the kernel limits the children of an empty group only", p.parent, len(pids)-1)
	}
	leaf, err := o.claim(self, p.parent, leafName)
	if err != nil {
		return explain(err)
	}
	p.leaf = leaf
	if err := o.writeFile(filepath.Join(leaf.dir, "cgroup.procs"), fmt.Sprint(self.pid)); err != nil {
		return errors.Join(fmt.Errorf("move ourselves one group down: %w", err), o.leaveLeaf(p))
	}
	return nil
}

// leaveLeaf undoes enable and enterLeaf. Where another manager still limits
// groups beneath the same parent the kernel refuses, and we stay in the leaf.
func (o *ops) leaveLeaf(p *place) error {
	for _, c := range p.enabled {
		err := o.writeFile(filepath.Join(p.parent, "cgroup.subtree_control"), "-"+c)
		if errors.Is(err, unix.EBUSY) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("disable %s again: %w", c, err)
		}
	}
	p.enabled = nil
	if p.leaf.dir == "" {
		return nil
	}
	if err := o.writeFile(filepath.Join(p.parent, "cgroup.procs"), fmt.Sprint(os.Getpid())); err != nil {
		return fmt.Errorf("move ourselves back: %w", err)
	}
	err := o.removeGroup(p.leaf.dir, time.Second)
	p.leaf.release()
	p.leaf = claimed{}
	return err
}

// passOn enables controllers in our own group, for the slots in it.
func (o *ops) passOn(dir string, controllers []string, why reasons) (works []string) {
	for _, c := range controllers {
		if err := o.writeFile(filepath.Join(dir, "cgroup.subtree_control"), "+"+c); err != nil {
			why.add(c, fmt.Errorf("enable it in our own group: %w", err))
			continue
		}
		works = append(works, c)
	}
	return works
}

// reachable makes sure that a process can be born in a group beneath the given
// one: the kernel wants the nearest group above both it and us to be writable.
func (h *hierarchy) reachable(group string) error {
	common := group
	for common != "/" && common != h.own && !isBeneath(h.own, common) {
		common = path.Dir(common)
	}
	file := filepath.Join(h.path(common), "cgroup.procs")
	if err := unix.Access(file, unix.W_OK); err != nil {
		return explain(&fs.PathError{Op: "start processes through", Path: file, Err: err})
	}
	return nil
}

func isBeneath(group, above string) bool {
	return above == "/" || len(group) > len(above) && group[:len(above)] == above && group[len(above)] == '/'
}
