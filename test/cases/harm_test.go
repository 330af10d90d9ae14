package cases

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belljar/belljar"
)

// A watch is set up before a program runs and gives what is looked at after it.
type watch func(p *play) (after func(r *reply))

// harms are the words of must_not.
var harms = map[string]watch{
	"leak": func(p *play) func(*reply) {
		return func(r *reply) { p.b.canary.Unharmed(p, append(r.texts, p.journal(r))...) }
	},
	"escape": func(p *play) func(*reply) {
		before := p.outside()
		return func(r *reply) {
			p.b.canary.Unharmed(p)
			if now := p.outside(); now != before {
				p.Errorf("outside the sandbox something changed:\n%s\nbefore:\n%s", now, before)
			}
		}
	},
	"survive": func(p *play) func(*reply) {
		return func(*reply) {
			var left []string
			for end := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
				if left = processesOf(p.nonce); len(left) == 0 {
					return
				}
				if time.Now().After(end) {
					break
				}
			}
			p.Errorf("still there a second later: %v", left)
		}
	},
	"hang": func(p *play) func(*reply) {
		return func(*reply) {} // every run is guarded, see play.guard
	},
	"engine_down": func(p *play) func(*reply) {
		return func(*reply) {
			if out := p.line("print('alive')"); out != "alive\n" {
				p.Errorf("afterwards a line of Python printed %q", out)
			}
		}
	},
	"host_oom": func(p *play) func(*reply) {
		before := ownOOMKills()
		return func(*reply) {
			if n := ownOOMKills(); n != before {
				p.Errorf("the kernel killed %d processes of the engine's own group", n-before)
			}
			if len(processesOf(p.b.canary.Proc)) == 0 {
				p.Errorf("the process beside the run is gone")
			}
		}
	},
	"disk_left": func(p *play) func(*reply) {
		const look = "import os\nfor d in ('.', '/tmp', '/dev/shm'):\n    s = os.statvfs(d)\n    print(d, s.f_bavail * s.f_bsize, s.f_favail, sorted(os.listdir(d)))\n"
		before := p.line(look)
		return func(*reply) {
			if now := p.line(look); now != before || now == "" {
				p.Errorf("the next run finds\n%sthe one before found\n%s", now, before)
			}
		}
	},
	"ran": func(p *play) func(*reply) {
		return func(r *reply) {
			if r.res.Status != belljar.StatusRefused || r.res.ExitCode != nil || r.res.Usage.WallMS > 0 || r.res.Stdout != "" {
				p.Errorf("something ran: %+v", r.res)
			}
		}
	},
	"forged_frame": func(p *play) func(*reply) {
		return func(*reply) {} // the surface counts every frame, see raw
	},
}

// processesOf lists the processes that have a word in their arguments or in their
// environment.
func processesOf(word string) (list []string) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // a process may end meanwhile
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(args, []byte(word)) || bytes.Contains(env, []byte(word)) {
			list = append(list, filepath.Base(dir)+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte(" "))))
		}
	}
	return list
}

// outside describes what a run could have changed: the canary's folder, and what
// bears the run's nonce where everybody may write.
func (p *play) outside() string {
	var b strings.Builder
	text, err := os.ReadFile(p.b.canary.File)
	b.Write(text)
	if err != nil {
		b.WriteString(err.Error())
	}
	names := []string{"none"}
	for _, dir := range []string{"/", "/tmp", "/var/tmp", "/dev/shm", os.TempDir(), p.b.work, filepath.Dir(p.b.canary.File)} {
		found, err := filepath.Glob(filepath.Join(dir, "*"+p.nonce+"*"))
		if err == nil {
			names = append(names, found...)
		}
	}
	slices.Sort(names)
	return b.String() + "\n" + strings.Join(names, "\n")
}

// ownOOMKills counts the processes that the kernel killed for memory in this
// process's own control group; those of the runs have groups beneath or beside it.
// It is 0 where the kernel does not tell.
func ownOOMKills() (n int) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		file := ""
		switch {
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			file = filepath.Join("/sys/fs/cgroup/memory", f[2], "memory.oom_control")
		case f[0] == "0":
			file = filepath.Join("/sys/fs/cgroup", f[2], "memory.events.local")
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n += atoi(value)
			}
		}
	}
	return n
}
