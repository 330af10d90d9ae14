//go:build linux

package cgroup

import (
	"fmt"
	"strings"

	"github.com/belljar/belljar"
)

// reason says in one line why a controller cannot be used.
func (m *Manager) reason(controller string) string {
	err := m.why[controller]
	if err == nil {
		return m.absent(controller).Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// Checks are the lines of doctor about control groups.
func (m *Manager) Checks() []belljar.Check {
	out := []belljar.Check{
		m.check("memory", ProtectMemory, "the memory of a run is limited and counted"),
		m.check("pids", ProtectPids, "the processes of a run are limited and counted"),
	}
	kill := belljar.Check{Name: "cgroup_kill", State: belljar.CheckOK}
	switch {
	case m.v2 != nil && m.v2.kills(m.ops):
		kill.Meaning = "a run is ended in one step by cgroup.kill in " + m.v2.group.dir
	case len(m.places()) > 0:
		kill.Meaning = "a run is ended process by process, with forks stopped meanwhile"
	default:
		kill.State = belljar.CheckWarn
		kill.Meaning = "no control group ends a run; its process namespace does"
	}
	return append(out, kill)
}

func (m *Manager) check(controller, name, what string) belljar.Check {
	if p := m.placeOf(controller); p != nil {
		return belljar.Check{
			Name: name, State: belljar.CheckOK,
			Meaning: fmt.Sprintf("%s by control groups %s in %s", what, p.h, p.group.dir),
		}
	}
	return belljar.Check{
		Name: name, State: belljar.CheckWarn,
		Meaning: fmt.Sprintf("not by a control group: %s", m.reason(controller)),
		Remedy:  m.remedy(controller),
	}
}

func (m *Manager) remedy(controller string) string {
	for _, h := range m.hierarchies {
		for _, c := range h.controllers {
			switch {
			case c != controller:
			case h.v2:
				return "start belljar in a group of its own: `systemd-run --user --scope -p Delegate=yes belljar ...`, or Delegate=yes in its service; in a container, as the only process or with the writable cgroup tree of a private cgroup namespace"
			default:
				return fmt.Sprintf("as root make a group for this user and name it as the parent: `mkdir %[1]s && chown -R USER %[1]s`, in each hierarchy", h.path("/belljar"))
			}
		}
	}
	return "mount cgroup2 on /sys/fs/cgroup, or give the container its cgroup tree"
}
