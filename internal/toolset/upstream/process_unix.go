//go:build unix && !linux

package upstream

import "syscall"

// There is no parent-death signal here: after kill -9 of this process a server
// has to heed the end of its stdin.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func awaitExit(int) bool { return false }
