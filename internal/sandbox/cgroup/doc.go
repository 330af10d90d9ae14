// Package cgroup limits the memory and the processes of runs by Linux control
// groups, counts what they used, and ends them.
//
// # Slots
//
// Programs run one at a time in a [Slot], which is made once and reused: making
// a group, and above all moving a process into one, costs far more than setting
// a limit. So nothing is moved when a run starts; the run is born in its group:
//
//   - Version 1: the slot's spawner, the small process that makes each run, was
//     put into the slot's groups once ([Slot.Enter]). What it forks is inside.
//   - Version 2: the spawner stays outside and clones with CLONE_INTO_CGROUP and
//     the descriptor [Slot.FD].
//   - Both: where the controllers are version 1 but a version 2 tree is mounted
//     without them, the slot has a group in each. Version 1 limits, version 2 ends
//     the whole group in one step. FD may be ignored there (an old kernel, a
//     filter that refuses clone3): limits hold, and [Slot.Kill] finds the rest.
//
// A slot's life: NewSlot, Enter, then for each run Arm, the run, Stats, Kill,
// Idle; a slot that Idle calls unclean is closed and replaced, because what is
// still charged to it would be taken from the next run.
//
// # Whose groups
//
// All groups are ours, beneath one group for each manager and hierarchy, named
// belljar-<pid>-<start time>-<number>. The manager holds a lock (flock) on it, so
// [Manager.Sweep] of another process can tell a dead owner's group from a living
// sibling's even where it cannot see the owner's process, as between two
// containers that share a parent group. No group we did not make is ever written
// to, with one exception that the next section explains.
//
// # Version 2 and delegation
//
// Version 2 has a rule against inner processes: a group whose children are
// limited may hold no process itself (the root group excepted). Where our own
// group was handed to us (systemd's Delegate=yes, a group that belongs to our
// user, or the root of a container's cgroup namespace) and we are alone in it, we
// move ourselves one level down, into belljar-<pid>-<start time>-leaf, and enable
// the controllers for the children; Close undoes both. Where others share the
// group, or it was not handed to us, nothing is moved and the protection is
// reported as missing, with the command that would help.
//
// # What the numbers mean
//
// Memory is everything the kernel charges to the group: heap, page cache, tmpfs
// and shared memory, page tables, kernel objects. Swap is off. The spawner's own
// kernel memory is charged too in version 1; it is measured once and added to the
// limit, so that the program can have all of what it was promised.
package cgroup
