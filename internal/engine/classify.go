package engine

import (
	"strconv"
	"syscall"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox"
	"golang.org/x/sys/unix"
)

// classify writes how the program ended into the result. It looks at facts alone:
// who ended it, and the wait status. A program that chose the exit code 137 exited.
func classify(res *belljar.Result, exit *sandbox.Exit) {
	switch exit.Cause {
	case sandbox.CauseTimeout:
		res.Status = belljar.StatusTimedOut
	case sandbox.CauseMemory:
		res.Status = belljar.StatusOutOfMemory
	case sandbox.CauseOutput:
		res.Status = belljar.StatusOutputLimit
	case sandbox.CauseCancel:
		res.Status = belljar.StatusCancelled
	default:
		res.OK = true
		res.Status = belljar.StatusExited
		if exit.Wait.Signaled() {
			res.Status = belljar.StatusSignalled
		}
	}
	code := exit.Wait.ExitStatus()
	if exit.Wait.Signaled() {
		number, name := int(exit.Wait.Signal()), signalName(exit.Wait.Signal())
		res.Signal, res.SignalName = &number, &name
		code = 128 + number
	}
	res.ExitCode = &code
}

// signalName gives SIGSEGV for 11; real-time signals have numbers instead of names.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	const firstRealTime = 34 // glibc keeps 32 and 33
	if s >= firstRealTime {
		return "SIGRTMIN+" + strconv.Itoa(int(s)-firstRealTime)
	}
	return "SIG" + strconv.Itoa(int(s))
}
