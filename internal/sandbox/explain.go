package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/initproc"
)

// explain turns a step that the kernel refused into a refusal with cause and
// remedy. What it does not know stays a fault.
func (h *Host) explain(err error) error {
	var step *initproc.StepError
	if !errors.As(err, &step) {
		return err
	}
	if name, ok := strings.CutPrefix(step.Step, stepFill); ok {
		switch step.Errno {
		case syscall.ENOSPC:
			return belljar.Refuse(belljar.CodeBadRequest, "Send less, or raise the disk limit.", "The run's files do not fit into its workspace (%s).", name)
		case syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG:
			return belljar.Refuse(belljar.CodeBadFileName, "Give every file a name of its own.", "The file %q cannot be made: %v.", name, step.Errno)
		}
		return err
	}
	if name, ok := strings.CutPrefix(step.Step, "bind "); ok && (step.Errno == syscall.ENOENT || step.Errno == syscall.EACCES) {
		return belljar.Refuse(belljar.CodeNoToolchain, "Make the folder readable for the user that runs belljar, or install the toolchain below /usr.",
			"The folder %s cannot be shown to a run: %v.", name, step.Errno)
	}
	if name, ok := strings.CutPrefix(step.Step, "execve "); ok && step.Errno != syscall.ENOMEM {
		return belljar.Refuse(belljar.CodeNoToolchain, "Reinstall the toolchain, or name another interpreter in the configuration.",
			"The program %s cannot be started inside the sandbox: %v.", name, step.Errno)
	}
	if step.Errno == syscall.ENOMEM || step.Errno == syscall.EAGAIN {
		return err
	}
	cause, remedy := h.why(step)
	return belljar.Refuse(belljar.CodeIsolation, remedy, "The isolation level namespaces is not to be had here: %s (%v).", cause, step)
}

// why names the host's setting behind a refused step. It reads settings only
// after a failure, never on the way of a run.
func (h *Host) why(step *initproc.StepError) (cause, remedy string) {
	setting := func(name string) string {
		raw, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(raw))
	}
	switch {
	case setting("user/max_user_namespaces") == "0":
		return "user namespaces are switched off", "Set `sysctl -w user.max_user_namespaces=15000` as root."
	case setting("kernel/unprivileged_userns_clone") == "0" && !h.privileged:
		return "the kernel keeps user namespaces from ordinary users", "Set `sysctl -w kernel.unprivileged_userns_clone=1` as root, or run belljar as root."
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1" && !h.privileged:
		return "AppArmor keeps user namespaces from ordinary users", "Give belljar an AppArmor profile with `userns,`, or set `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root."
	case step.Errno == syscall.ENOSYS:
		return "the kernel lacks a system call", "Linux 5.13 or newer is needed; inside a container, its seccomp profile may hide calls: allow mount_setattr, clone and unshare."
	case step.Step == "mount /proc" && (step.Errno == syscall.EPERM || step.Errno == syscall.EACCES):
		return "this container masks /proc, so a run cannot get one of its own", "Run the container with `--security-opt systempaths=unconfined`, or run belljar as root in it with CAP_SYS_ADMIN."
	case step.Step == "clone" && step.Errno == syscall.ENOSPC:
		return "the host's limit on namespaces is reached", "Raise `user.max_user_namespaces` and its siblings in /proc/sys/user."
	case h.privileged:
		return "the host's root may not make namespaces or mounts here", "Inside a container, add CAP_SYS_ADMIN and allow mount and unshare in its seccomp profile."
	}
	return "the kernel refused a part of the set-up", "Run `belljar doctor` as the same user; inside a container, its seccomp profile may forbid unshare and mount."
}

// Probe runs the smallest program in a sandbox and says what protected it: the
// only test of a level that cannot be wrong.
func (h *Host) Probe(ctx context.Context) (belljar.Isolation, error) {
	exit, err := h.Run(ctx, &Spec{
		Argv: []string{"/bin/true"}, Env: []string{},
		Limits: belljar.Limits{TimeoutMS: 5000, MemoryBytes: 64 << 20, Processes: 8, DiskBytes: 1 << 20, Inodes: 100, OutputBytes: 1 << 10, OpenFiles: 64},
	})
	if err != nil {
		return belljar.Isolation{}, err
	}
	return exit.Isolation, nil
}

// Checks are the lines of doctor that the sandbox answers for.
func (h *Host) Checks(ctx context.Context) []belljar.Check {
	c := belljar.Check{Name: "isolation", State: belljar.CheckOK}
	iso, err := h.Probe(ctx)
	var refusal *belljar.Refusal
	switch {
	case errors.As(err, &refusal):
		c.State, c.Meaning, c.Remedy = belljar.CheckFail, refusal.Reason, refusal.Hint
	case err != nil:
		c.State, c.Meaning, c.Remedy = belljar.CheckFail, "A probe could not be run: "+err.Error()+".", "Report this with the output of `belljar version`."
	default:
		c.Meaning = "Runs get the level " + string(iso.Level) + " (" + strings.Join(iso.Protections, ", ") + ")."
	}
	groups, err := h.openGroups()
	if err != nil {
		return []belljar.Check{c}
	}
	return append([]belljar.Check{c}, groups.Checks()...)
}
