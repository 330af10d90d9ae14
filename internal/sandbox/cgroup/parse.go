//go:build linux

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// mount is one cgroup file system as /proc/self/mountinfo shows it.
type mount struct {
	point       string
	root        string // the group that is visible at point; "/" when it is all of it
	v2          bool
	controllers []string // version 1 only
}

// parseMounts picks the cgroup mounts out of a mountinfo file. Lines that are not
// of its form (see proc_pid_mountinfo(5)) are passed over: the kernel writes
// them, but a line we cannot read is no reason to run without the others.
func parseMounts(data []byte) []mount {
	var out []mount
	for line := range bytes.Lines(data) {
		left, right, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " - ")
		if !ok {
			continue
		}
		l, r := strings.Fields(left), strings.Fields(right)
		if len(l) < 6 || len(r) < 3 || (r[0] != "cgroup" && r[0] != "cgroup2") {
			continue
		}
		m := mount{point: unescape(l[4]), root: unescape(l[3]), v2: r[0] == "cgroup2"}
		if !path.IsAbs(m.point) || !path.IsAbs(m.root) {
			continue
		}
		if !m.v2 {
			for opt := range strings.SplitSeq(r[2], ",") {
				if slices.Contains(wanted, opt) {
					m.controllers = append(m.controllers, opt)
				}
			}
			if len(m.controllers) == 0 {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// unescape undoes the octal escapes of mountinfo (\040 is a space).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseSelf reads /proc/self/cgroup: our group in each hierarchy by the name of
// each of its controllers, and under "" for version 2.
func parseSelf(data []byte) map[string]string {
	out := map[string]string{}
	for line := range bytes.Lines(data) {
		f := strings.SplitN(strings.TrimRight(string(line), "\n"), ":", 3)
		if len(f) != 3 || !path.IsAbs(f[2]) {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			out[""] = f[2]
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c != "" {
				out[c] = f[2]
			}
		}
	}
	return out
}

// beneath gives a group's path relative to a mount that shows only root and what
// is below. A group outside of it (as in a container without a cgroup namespace
// of its own, or after a move by somebody else) counts as root itself.
func beneath(root, group string) string {
	if strings.HasPrefix(group, "/../") {
		return "/" // above the root of our cgroup namespace
	}
	group = path.Clean(group)
	switch {
	case root == "/":
		return group
	case strings.HasPrefix(group, root+"/"):
		return group[len(root):]
	}
	return "/"
}

// parseNumber reads the only number of a control file; "max" is the largest.
func parseNumber(data []byte) (int64, error) {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	s := string(bytes.TrimSpace(first))
	if s == "max" {
		return math.MaxInt64, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(s, "-") {
		return math.MaxInt64, nil // an unlimited counter of an old kernel
	}
	if err != nil {
		return 0, fmt.Errorf("not a number: %q", s)
	}
	return n, nil
}

// parseKey reads one number out of a file of "key number" lines.
func parseKey(data []byte, key string) (int64, error) {
	for line := range bytes.Lines(data) {
		k, v, ok := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
		if ok && string(k) == key {
			return parseNumber(v)
		}
	}
	return 0, fmt.Errorf("no line %q", key)
}

// parsePids reads a list of process ids, one a line. The kernel writes 0 for a
// process that our pid namespace does not show; it cannot be named, so it is
// left out.
func parsePids(data []byte) ([]int, error) {
	var out []int
	for line := range bytes.Lines(data) {
		s := string(bytes.TrimSpace(line))
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("not a process id: %q", s)
		}
		if n > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}
