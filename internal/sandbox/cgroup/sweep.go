//go:build linux

package cgroup

import (
	"context"
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

// sweepSiblings bounds how many groups beside our own are looked into.
const sweepSiblings = 512

// Sweep removes the groups of owners that have died, in every hierarchy, and
// returns their folders. What still runs in them is killed first. It looks into
// the configured parent; without one into our own group and those above it, and
// one level into the groups beside our own, where an earlier session or service
// instance may have lived.
//
// A group is taken for a dead one's only if its name is exactly of our form, it
// belongs to our user, no process has the id and start time in its name, and its
// lock is free.
func (m *Manager) Sweep(ctx context.Context) ([]string, error) {
	var removed []string
	var errs []error
	for _, h := range m.hierarchies {
		for _, parent := range m.sweepParents(h) {
			entries, err := os.ReadDir(parent)
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
					errs = append(errs, fmt.Errorf("look for old control groups: %w", err))
				}
				continue
			}
			for _, e := range entries {
				o, part, ok := parseGroupName(e.Name())
				if !ok || !e.IsDir() || o == m.self || o.alive() {
					continue
				}
				dir := filepath.Join(parent, e.Name())
				if own := h.path(h.own); own == dir || isBeneath(own, dir) {
					continue // never the ground we stand on
				}
				if err := ctx.Err(); err != nil {
					return removed, errors.Join(append(errs, err)...)
				}
				gone, err := m.ops.sweepGroup(ctx, dir, part == leafName)
				if err != nil {
					errs = append(errs, err)
				}
				if gone {
					removed = append(removed, dir)
				}
			}
		}
	}
	return removed, errors.Join(errs...)
}

func (m *Manager) sweepParents(h *hierarchy) []string {
	if m.cfg.Parent != "" {
		return []string{h.path(m.cfg.Parent)}
	}
	var out []string
	for g := h.own; ; g = path.Dir(g) {
		out = append(out, h.path(g))
		if g == "/" {
			break
		}
	}
	if h.own != "/" {
		above := h.path(path.Dir(h.own))
		entries, err := os.ReadDir(above)
		if err != nil {
			return out // seen and reported as one of the parents
		}
		for _, e := range entries[:min(len(entries), sweepSiblings)] {
			dir := filepath.Join(above, e.Name())
			if e.IsDir() && !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
	}
	return out
}

// sweepGroup removes one group of ours if its lock is free. The lock is held
// meanwhile, so two sweepers never work on the same group.
func (o *ops) sweepGroup(ctx context.Context, dir string, leaf bool) (bool, error) {
	fd, err := lockDir(dir)
	if errors.Is(err, errNotOurs) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sweep: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Geteuid() {
		return false, nil
	}
	dirs, err := subgroups(dir)
	if err != nil {
		return false, fmt.Errorf("sweep: %w", err)
	}
	if leaf {
		// It held the owner and what the owner started beside runs, which is not
		// ours to end. The kernel refuses to remove it while they live.
		if err := o.rmdir(dir); err != nil {
			return false, nil
		}
		return true, nil
	}
	if err := o.clear(ctx, dirs); err != nil {
		return false, fmt.Errorf("sweep %s: %w", dir, err)
	}
	for _, d := range dirs {
		if err := o.removeGroup(d, time.Second); err != nil {
			return false, fmt.Errorf("sweep: %w", err)
		}
	}
	return true, nil
}

// clear kills everything in the groups.
func (o *ops) clear(ctx context.Context, dirs []string) error {
	end := time.Now().Add(killPatience)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		left := 0
		for _, d := range dirs {
			// Both are here for forking programs, and neither file is in every group.
			for _, stop := range []struct{ file, value string }{{"pids.max", "0"}, {"cgroup.kill", "1"}} {
				if err := o.writeFile(filepath.Join(d, stop.file), stop.value); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			n, err := killGroup(d, func(int) bool { return false })
			if err != nil {
				return err
			}
			left += n
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes do not end", left)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// subgroups lists a group and all beneath it, the deepest first.
func subgroups(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below, err := subgroups(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return append(out, dir), nil
}
