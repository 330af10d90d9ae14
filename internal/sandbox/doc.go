// Package sandbox runs one program in one isolated place and says what protected
// it.
//
// A [Host] stands for this machine. It keeps slots, each a place for one run at a
// time: a spawner in its control groups, settled into a read-only root. [Host.Run]
// takes a slot, prepares one table of system calls (setup.go is the order of them,
// and the order is the security), hands it over, and then only watches: the
// program's streams, the clock, the counters of the control group.
//
//	initproc   makes the processes: from clone to exec, and PID 1
//	rootfs     the mounts, as data
//	seccomp    the filter, as bytes
//	cgroup     limits and counters of control groups
//
// Nothing is claimed that was not applied: every protection of a result stands for
// system calls of the table that all succeeded, since a table that fails at any step
// never reaches execve. What the host cannot give becomes a refusal that names cause
// and remedy (explain.go).
package sandbox
