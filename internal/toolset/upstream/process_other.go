//go:build !unix

package upstream

import "syscall"

func processAttr() *syscall.SysProcAttr { return nil }

// awaitExit cannot wait without reaping here.
func awaitExit(int) bool { return false }
