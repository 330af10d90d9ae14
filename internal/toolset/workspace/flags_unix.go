//go:build unix

package workspace

import (
	"os"
	"syscall"
)

// openFlags never wait for the other side of a pipe and never make a terminal
// the controlling one.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
