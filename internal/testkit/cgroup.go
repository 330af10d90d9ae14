package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// needCgroup tells whether this user can make a control group that the named
// controller governs.
func needCgroup(controller string) error {
	v1, v2, err := cgroupMounts()
	if err != nil {
		return err
	}
	if root, ok := v1[controller]; ok {
		return tryGroup(filepath.Join(root, ownGroup(controller)), controller+".")
	}
	if v2 == "" {
		return fmt.Errorf("no control group mount has the %s controller", controller)
	}
	own := filepath.Join(v2, ownGroup(""))
	// Enabling may be refused where processes sit in the group; then what the
	// group already passes on decides.
	_ = os.WriteFile(filepath.Join(own, "cgroup.subtree_control"), []byte("+"+controller), 0)
	return tryGroup(own, controller+".")
}

// tryGroup makes a group beneath parent and looks for a control file whose name
// begins with prefix.
func tryGroup(parent, prefix string) error {
	dir := filepath.Join(parent, fmt.Sprintf("testkit-probe-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer os.Remove(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			return nil
		}
	}
	return fmt.Errorf("a group beneath %s has no %s* files", parent, prefix)
}

// cgroupMounts finds the mounted hierarchies: of version 1 by controller, and
// the one of version 2.
func cgroupMounts() (v1 map[string]string, v2 string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, "", err
	}
	v1 = map[string]string{}
	for line := range strings.Lines(string(text)) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		switch r[0] {
		case "cgroup":
			for opt := range strings.SplitSeq(r[2], ",") {
				v1[opt] = l[4]
			}
		case "cgroup2":
			v2 = l[4]
		}
	}
	return v1, v2, nil
}

// ownGroup is this process's group in the hierarchy of a version 1 controller,
// or in that of version 2 for "".
func ownGroup(controller string) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "/"
	}
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for name := range strings.SplitSeq(f[1], ",") {
			if name == controller {
				return f[2]
			}
		}
	}
	return "/"
}
