//go:build unix

package audit

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether the file is ours, or root's where orRoot says that
// root may own it.
func ownedByUs(info fs.FileInfo, orRoot bool) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || orRoot && st.Uid == 0)
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
