//go:build !linux

package upstream

import (
	"os"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return nil }

// awaitExit leaves the waiting to Wait: where a process cannot be awaited without
// being reaped, its group is not killed after its own end.
func awaitExit(int) {}

func killGroup(p *os.Process) { _ = p.Kill() } // gone already: fine

func terminateGroup(p *os.Process) { _ = p.Signal(os.Interrupt) } // gone already, or not to be had: killed next
