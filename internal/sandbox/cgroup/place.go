//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// place is where our groups are in one hierarchy.
type place struct {
	h           *hierarchy
	group       claimed
	parent      string
	controllers []string // proved to work in groups beneath ours

	leaf    claimed  // version 2: where we moved ourselves; dir "" when we did not
	enabled []string // version 2: what we enabled in parent
}

func (p *place) has(controller string) bool {
	return p != nil && slices.Contains(p.controllers, controller)
}

// reasons collects why a controller cannot be used.
type reasons map[string]error

func (r reasons) add(controller string, err error) {
	r[controller] = errors.Join(r[controller], err)
}

// probe says how a controller proves that it works: a value is set and read back.
type probe struct{ file, value string }

func probeOf(controller string, v2 bool) probe {
	switch {
	case controller == "memory" && v2:
		return probe{"memory.max", "67108864"}
	case controller == "memory":
		return probe{"memory.limit_in_bytes", "67108864"}
	case controller == "pids":
		return probe{"pids.max", "64"}
	case controller == "cpu" && v2:
		return probe{"cpu.weight", "50"}
	case controller == "cpu":
		return probe{"cpu.shares", "512"}
	}
	return probe{file: "cpuacct.usage"} // counts only
}

// prove finds out which of the controllers limit a group that we make in dir.
func (o *ops) prove(dir string, v2 bool, controllers []string, why reasons) (works []string) {
	test := filepath.Join(dir, "probe")
	if err := o.mkdir(test); err != nil {
		for _, c := range controllers {
			why.add(c, fmt.Errorf("make a group: %w", err))
		}
		return nil
	}
	for _, c := range controllers {
		if err := o.proveOne(test, probeOf(c, v2)); err != nil {
			why.add(c, err)
			continue
		}
		works = append(works, c)
	}
	if err := o.removeGroup(test, time.Second); err != nil {
		for _, c := range controllers {
			why.add(c, err)
		}
		return nil
	}
	return works
}

func (o *ops) proveOne(dir string, p probe) error {
	flags := unix.O_RDWR
	if p.value == "" {
		flags = unix.O_RDONLY
	}
	c, err := o.open(filepath.Join(dir, p.file), flags)
	if err != nil {
		return fmt.Errorf("set a limit: %w", err)
	}
	defer c.close()
	if p.value != "" {
		if err := c.write(p.value); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	n, err := c.readInt()
	if err != nil {
		return fmt.Errorf("read a limit back: %w", err)
	}
	if p.value != "" && fmt.Sprint(n) != p.value {
		return fmt.Errorf("%s was set to %s and reads %d", c.path, p.value, n)
	}
	return nil
}

// placeV1 makes our group in a version 1 hierarchy: in the configured parent, or
// in our own group so that whatever limits us limits the runs as well, or, where
// that is not writable, at the top.
func (o *ops) placeV1(h *hierarchy, self owner, parent string, controllers []string, why reasons) *place {
	candidates := []string{h.own, "/"}
	if parent != "" {
		candidates = []string{parent}
	}
	var failed error
	for _, group := range slices.Compact(candidates) {
		c, err := o.claim(self, h.path(group), "")
		if err != nil {
			failed = errors.Join(failed, explain(err))
			continue
		}
		p := &place{h: h, group: c, parent: h.path(group)}
		if slices.Contains(controllers, "memory") {
			if err := o.useHierarchy(c.dir); err != nil {
				failed = errors.Join(failed, err)
				o.abandon(p)
				continue
			}
		}
		p.controllers = o.prove(c.dir, false, controllers, why)
		if len(p.controllers) == 0 {
			o.abandon(p)
			return nil
		}
		return p
	}
	for _, c := range controllers {
		why.add(c, failed)
	}
	return nil
}

// useHierarchy makes a memory group count its children, as kernels since 5.11
// always do. Without it a limit above ours would not hold the runs.
func (o *ops) useHierarchy(dir string) error {
	c, err := o.openIf(filepath.Join(dir, "memory.use_hierarchy"), unix.O_RDWR)
	if err != nil || c == nil {
		return err
	}
	defer c.close()
	n, err := c.readInt()
	if err != nil || n == 1 {
		return err
	}
	return c.write("1")
}

// abandon gives a place back.
func (o *ops) abandon(p *place) error {
	err := o.removeGroup(p.group.dir, 2*time.Second)
	p.group.release()
	return errors.Join(err, o.leaveLeaf(p))
}

// explain puts the usual causes in words.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("the control group file system is mounted read-only: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not make groups there: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no such group: %w", err)
	}
	return err
}
