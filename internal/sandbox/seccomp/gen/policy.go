//go:build linux

package main

// Our changes to moby's list, by name. A name that an architecture does not
// have is skipped there; one that no architecture has is an error.

// refused are the dangerous calls: EPERM, and worth a word to whoever wrote the
// program.
var refused = []string{
	// Mounts and roots, by the old calls and the new ones.
	"mount", "umount2", "pivot_root", "chroot",
	"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	// Namespaces. clone is judged by its flags.
	"unshare", "setns",
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
	// Rich sources of kernel bugs.
	"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "memfd_secret",
	// Files by handle, past every mount and path check; watching whole file systems.
	"name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark",
	// The machine itself.
	"kexec_load", "kexec_file_load", "reboot", "init_module", "finit_module", "delete_module",
	"swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "syslog", "vhangup",
	"sethostname", "setdomainname",
	"settimeofday", "clock_settime", "adjtimex", "clock_adjtime", // the last two only differ from a read behind a pointer
	"iopl", "ioperm", "modify_ldt",
}

// withheld are calls that moby allows and ordinary programs do without: ENOSYS,
// as on a kernel that lacks them.
var withheld = []string{
	// Sandboxing oneself further is harmless but for the code it opens, and
	// whoever does it must cope with kernels without.
	"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
	// What is mounted; /proc/self/mountinfo says the same.
	"statmount", "listmount",
	// Asynchronous files of old: their number is one for the whole host.
	"io_setup", "io_submit", "io_getevents", "io_pgetevents", "io_destroy", "io_cancel",
}

// done are calls that report success and do nothing. See the package comment.
var done = []string{"sync", "syncfs"}

// judged are the calls that depend on arguments, with the rule that does it.
var judged = map[string]string{
	"clone":       "ruleClone",
	"ioctl":       "ruleIoctl",
	"mknod":       "ruleMknod",
	"mknodat":     "ruleMknodat",
	"personality": "rulePersonality",
	"prctl":       "rulePrctl",
	"seccomp":     "ruleSeccomp",
	"socket":      "ruleSocket",
	"socketpair":  "ruleSocketpair",

	// What is done to a process by number must not be done to our PID 1.
	"prlimit64":          "ruleNotInit",
	"sched_setaffinity":  "ruleNotInit",
	"sched_setattr":      "ruleNotInit",
	"sched_setparam":     "ruleNotInit",
	"sched_setscheduler": "ruleNotInit",
	"ioprio_set":         "ruleIoprio",
	"setpriority":        "rulePriority",
}

// renamed maps names of the number tables to moby's, which are the kernel's.
var renamed = map[string]string{
	"fstatat": "newfstatat", // arm64, number 79: without it no program gets far
}

// notACall are lines of the number tables that name no system call.
var notACall = map[string]bool{
	"arch_specific_syscall": true, // start of a range kept for architectures
}

// The calls 403 to 423 with 64-bit times exist on 32-bit machines alone. The
// arm64 table has them all the same.
const firstTime64, lastTime64 = 403, 423
