// Package seccomp turns a profile into the bytes of a system call filter.
//
// It decides and compiles; it does not install anything. The init program of a
// sandbox loads the bytes just before it executes the program, after Landlock,
// limits and everything else that the filter would refuse.
//
// # What a filter answers
//
//   - A call of a foreign architecture (32-bit entry on a 64-bit machine) kills
//     the process: its numbers mean other calls, and nothing of ours uses them.
//   - A dangerous call answers EPERM, so that a person can be told about it.
//   - Every other call that is not on the list answers ENOSYS, as a kernel that
//     does not know it. Programs and C libraries probe for new calls and fall
//     back on ENOSYS; EPERM or death would break them with each libc update.
//     clone3 and io_uring are among these: the filter cannot see the flags that
//     clone3 has behind a pointer, and io_uring is a second way to make calls
//     that no filter sees. x32 numbers are too, with no instruction spent on it.
//   - Some calls depend on their arguments: clone, socket, socketpair, ioctl,
//     prctl, seccomp, personality, mknod, mknodat. See rules.go.
//   - sync and syncfs answer success without doing anything: they would make
//     every file system of the host write back, for as long as a run likes to
//     call them, and nothing of a run is meant to outlive it on a disk.
//
// # Where the list comes from
//
// The allowlist is that of github.com/moby/profiles/seccomp without any entry
// that depends on a capability, minus ours; the numbers are those of
// github.com/elastic/go-seccomp-bpf/arch. Package gen joins them and writes
// zcallsx86.go and zcallsarm.go, one line per known call, so that a change of
// either source is a reviewable diff and starting the command costs no parsing.
// A test of gen fails when the committed files are not what the sources give.
//
// # How it is compiled
//
// A profile is a decision diagram: a node looks at one 32-bit word of the
// call's data (architecture, number, half of an argument), masks it, and goes
// on by ranges of its value until an action is reached. The compiler turns each
// node into a tree of comparisons. Nodes are emitted last instruction first, so
// every jump target is already placed and a jump that is too long for its eight
// bits is seen, and bridged, at once.
//
// The path to a plainly allowed call uses only what the kernel's own dry run
// understands (load of number and architecture, comparisons, return). Kernels
// from 5.11 on therefore find at installation that the call is always allowed
// and never run the filter for it.
//
// Arguments are 64 bits wide in the filter's data. Where the kernel takes an
// int (clone flags, socket family, ioctl command, prctl option) it ignores the
// high half, and so does the rule: comparing all 64 bits would let a caller
// slip past by setting a high bit. Where the kernel takes a long, both halves
// are compared.
package seccomp

//go:generate go run ./gen
