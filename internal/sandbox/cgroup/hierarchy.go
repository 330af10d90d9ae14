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
	"strings"
)

// wanted are the controllers that are of use to us. Version 2 has no cpuacct: it
// counts processor time in every group.
var wanted = []string{"memory", "pids", "cpu", "cpuacct"}

const usualRoot = "/sys/fs/cgroup"

// hierarchy is one mounted tree of groups.
type hierarchy struct {
	v2          bool
	controllers []string // v1: of the mount; v2: what the top group offers
	dir         string   // where it is mounted
	own         string   // our own group, relative to dir, beginning with a slash
}

func (h *hierarchy) String() string {
	if h.v2 {
		return "version 2"
	}
	return "version 1 (" + strings.Join(h.controllers, ",") + ")"
}

// path is the folder of a group given relative to the hierarchy.
func (h *hierarchy) path(group string) string { return filepath.Join(h.dir, group) }

// findHierarchies lists the cgroup trees of this host, version 2 first.
func findHierarchies(cfg Config) ([]*hierarchy, error) {
	self := cfg.ProcSelf
	if self == "" {
		self = "/proc/self"
	}
	mountinfo, err := os.ReadFile(filepath.Join(self, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	groups, err := os.ReadFile(filepath.Join(self, "cgroup"))
	if err != nil {
		return nil, fmt.Errorf("find our control group: %w", err)
	}
	own := parseSelf(groups)

	var out []*hierarchy
	var seen []string // controllers, "" for version 2; a second mount of a tree adds nothing
	for _, m := range parseMounts(mountinfo) {
		dir, ok := rebase(m.point, cfg.Root)
		if !ok {
			continue
		}
		h := &hierarchy{v2: m.v2, dir: dir}
		key := ""
		if m.v2 {
			h.controllers, err = readControllers(filepath.Join(dir, "cgroup.controllers"))
			if errors.Is(err, fs.ErrNotExist) {
				continue // mounted over by something else
			}
			if err != nil {
				return nil, err
			}
		} else {
			h.controllers, key = m.controllers, m.controllers[0]
		}
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		group, ok := own[key]
		if !ok {
			group = "/"
		}
		h.own = beneath(path.Clean(m.root), group)
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b *hierarchy) int {
		switch {
		case a.v2 && !b.v2:
			return -1
		case b.v2 && !a.v2:
			return 1
		}
		return 0
	})
	return out, nil
}

// rebase puts root in the place of /sys/fs/cgroup. Mounts elsewhere count only
// when no root is given.
func rebase(point, root string) (string, bool) {
	if root == "" {
		return point, true
	}
	if point == usualRoot {
		return root, true
	}
	rest, ok := strings.CutPrefix(point, usualRoot+"/")
	return filepath.Join(root, rest), ok
}

// readControllers reads a list of controllers and keeps those of use to us.
func readControllers(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range strings.Fields(string(data)) {
		if slices.Contains(wanted, c) {
			out = append(out, c)
		}
	}
	return out, nil
}
