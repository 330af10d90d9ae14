//go:build linux

package cgroup

import (
	"strings"

	"golang.org/x/sys/unix"
)

// pids is the pids controller, the same in both versions.
type pids struct {
	files
	max, events, current *control
	most                 *control // pids.peak, since Linux 6.1; cannot be reset
	inV1                 bool     // so the spawner is in it
}

func openPids(o *ops, dir string) (*pids, error) {
	p := &pids{files: files{ops: o, dir: dir}}
	p.max = p.get("pids.max", unix.O_RDWR)
	p.events = p.get("pids.events", unix.O_RDONLY)
	p.current = p.get("pids.current", unix.O_RDONLY)
	p.most = p.getIf("pids.peak", unix.O_RDONLY)
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

func (p *pids) close() {
	if p != nil {
		p.files.close()
	}
}

// readPeak is 0 where the kernel keeps none.
func (p *pids) readPeak() (int64, error) {
	if p.most == nil {
		return 0, nil
	}
	return p.most.readInt()
}

// cpu counts processor time in nanoseconds.
type cpu struct {
	file *control
	v2   bool
}

func openCPUV1(o *ops, dir string) (*cpu, error) {
	c, err := o.open(dir+"/cpuacct.usage", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &cpu{file: c}, nil
}

// openCPUV2 needs no controller: every version 2 group has cpu.stat.
func openCPUV2(o *ops, dir string) (*cpu, error) {
	c, err := o.openIf(dir+"/cpu.stat", unix.O_RDONLY)
	if c == nil {
		return nil, err
	}
	return &cpu{file: c, v2: true}, nil
}

func (c *cpu) close() {
	if c != nil {
		c.file.close()
	}
}

func (c *cpu) read() (int64, error) {
	if c.v2 {
		n, err := c.file.readKey("usage_usec")
		return n * 1000, err
	}
	return c.file.readInt()
}

// kills reports whether the place's groups can be ended in one step.
func (p *place) kills(o *ops) bool {
	c, err := o.openIf(strings.TrimSuffix(p.group.dir, "/")+"/cgroup.kill", unix.O_WRONLY)
	defer c.close()
	return c != nil && err == nil
}
