package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belljar/belljar"
	"golang.org/x/sys/unix"
)

// grace is how long a silent pipe gets to show that somebody writes.
const grace = 250 * time.Millisecond

// readStdin gives the program's stdin. taken says that our stdin was the source.
func (a *app) readStdin(ctx context.Context, flag string, taken bool) (string, error) {
	var data []byte
	var err error
	switch {
	case flag == "-":
		data, err = readAll(ctx, a.in, maxStdin)
	case flag != "":
		data, err = readFile(ctx, flag, maxStdin)
		if err != nil && !errors.Is(err, errTooLong) && !isCancelled(err) {
			return "", belljar.Refuse(belljar.CodeBadRequest, "Name a file that can be read, or - for stdin.", "Cannot read --stdin %s: %v.", flag, bare(err))
		}
	case !taken && a.stdinMeant(ctx):
		data, err = readAll(ctx, a.in, maxStdin)
	}
	if errors.Is(err, errTooLong) {
		// Half of an input would give wrong answers.
		return "", belljar.Refuse(belljar.CodeBadRequest, "Give it with --file and let the program open it.", "stdin has more than the %d bytes that a program can be given.", maxStdin)
	}
	return string(data), err
}

// stdinMeant tells whether our stdin is meant for the program. See the package's
// documentation for the rule.
func (a *app) stdinMeant(ctx context.Context) bool {
	if a.in == nil {
		return false
	}
	info, err := a.in.Stat()
	if err != nil {
		return false // closed
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return true
	case mode&fs.ModeCharDevice != 0, mode.IsDir():
		return false // a terminal, /dev/null
	}
	if speaks(ctx, a.in, grace) || ctx.Err() != nil {
		return true // reading will say that it was cancelled
	}
	if neighbourWrites(a.in) {
		return true
	}
	a.say("stdin is a pipe in which nothing came; the program gets no input. </dev/null says so at once, --stdin - waits.")
	return false
}

// speaks waits until there are bytes or an end to read, at most for d.
func speaks(ctx context.Context, f *os.File, d time.Duration) bool {
	const step = 20 * time.Millisecond // how soon a cancelled call is noticed
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for end := time.Now().Add(d); ctx.Err() == nil; {
		n, err := unix.Poll(fds, int(step.Milliseconds()))
		if n > 0 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) || time.Now().After(end) {
			return false
		}
	}
	return false
}

// neighbourWrites tells whether another process of our pipeline holds the writing
// end of our stdin: one that has our parent or our process group and is none of
// our ancestors. Those hold it for whoever started us, and may never write.
func neighbourWrites(f *os.File) bool {
	pipe, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !strings.HasPrefix(pipe, "pipe:") {
		return false
	}
	self, parent := os.Getpid(), os.Getppid()
	group := unix.Getpgrp()
	ancestors := map[int]bool{self: true}
	for pid := parent; pid > 0 && !ancestors[pid]; pid, _, _ = relatives(pid) {
		ancestors[pid] = true
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || ancestors[pid] {
			continue
		}
		ppid, pgrp, ok := relatives(pid)
		if ok && (ppid == parent || pgrp == group) && writes(pid, pipe) {
			return true
		}
	}
	return false
}

// relatives gives parent and process group of a process.
func relatives(pid int) (ppid, pgrp int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name in parentheses may hold anything, also parentheses.
	_, rest, found := strings.Cut(string(stat[max(0, strings.LastIndexByte(string(stat), ')')):]), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 3 {
		return 0, 0, false
	}
	ppid, err1 := strconv.Atoi(fields[1])
	pgrp, err2 := strconv.Atoi(fields[2])
	return ppid, pgrp, err1 == nil && err2 == nil
}

// writes tells whether a process has a descriptor open for writing on the pipe.
func writes(pid int, pipe string) bool {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || target != pipe {
			continue
		}
		if info, err := os.Lstat(link); err == nil && info.Mode()&0o200 != 0 {
			return true
		}
	}
	return false
}
