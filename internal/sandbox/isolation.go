package sandbox

import (
	"github.com/belljar/belljar"
)

// isolation says what protects a run that has started: every protection named
// here was applied by a system call that succeeded, or the program would not run.
func (s *slot) isolation(filter string) belljar.Isolation {
	iso := belljar.Isolation{
		Level: belljar.LevelNamespaces,
		Protections: []string{
			"userns", "mounts", "pid", "net", "ipc", "uts", "cgroup",
			"seccomp", "no_new_privs", "no_capabilities", "rlimits", "process_rlimit", "disk_quota",
		},
		Missing: []belljar.Missing{{Protection: "landlock", Reason: "Not added on top of the mount namespace by this version."}},
		Network: "none", SeccompProfile: filter,
	}
	if s.memoryLimited {
		iso.Protections = append(iso.Protections, "memory_cgroup")
	} else {
		iso.Protections = append(iso.Protections, "memory_watch")
	}
	if s.processesLimited {
		iso.Protections = append(iso.Protections, "pids_cgroup")
	}
	iso.Missing = append(iso.Missing, s.missing...)
	return iso
}
