//go:build !unix

package upstream

import "os"

func killGroup(p *os.Process) { _ = p.Kill() } // gone already: fine

func terminateGroup(p *os.Process) { _ = p.Signal(os.Interrupt) } // where there is none, it is killed next
