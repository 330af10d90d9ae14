//go:build unix

package upstream

import (
	"os"
	"syscall"
)

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // gone already: fine

func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) } // gone already: fine
