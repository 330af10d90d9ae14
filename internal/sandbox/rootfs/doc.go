// Package rootfs describes the file system of a run as data, and turns it into
// system calls for the init program.
//
// It comes in two parts. The shared root is made once for a slot, by its spawner:
// an empty tmpfs becomes the root by pivot_root, with the host's tree hung below it
// at /.host for as long as things are taken from it. From there /usr and the
// toolchain's folders are bound read-only; /etc and /dev are made by hand with a
// few entries. Then the host's tree is detached and the root made read-only. No
// run can change any of it, so runs one after another may share it.
//
// What a run may write, and what tells about it, it gets for itself, in a mount
// namespace of its own on top of the shared root: a tmpfs sized by the disk limit,
// which appears as the workspace, /tmp and /dev/shm so that the three share one
// quota, and a new /proc for its PID namespace, read-only and masked.
package rootfs
