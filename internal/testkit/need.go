package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Feature is something of the machine that a test may need.
type feature struct {
	probe  func() error
	remedy string // how to get it
}

// features is the closed list of names for [Need]. A probe tells by trying, not
// by looking at versions.
var features = map[string]feature{
	"root":              {needRoot, "run the tests as root"},
	"userns":            {needUserns, "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"},
	"cgroup-memory":     {func() error { return needCgroup("memory") }, "run as root, or in a delegated control group (systemd-run --user --scope -p Delegate=yes)"},
	"cgroup-pids":       {func() error { return needCgroup("pids") }, "run as root, or in a delegated control group (systemd-run --user --scope -p Delegate=yes)"},
	"cgroup-v1":         {needCgroupV1, "mount the memory and pids controllers of version 1 below /sys/fs/cgroup"},
	"python":            {needProgram("python3"), "apt-get install python3"},
	"debian-python":     {needFile("/usr/bin/python3"), "apt-get install python3"},
	"node":              {needProgram("node"), "install Node.js 20 or later"},
	"npm":               {needProgram("npm"), "install Node.js 20 or later with npm"},
	"gcc":               {needProgram("gcc"), "apt-get install gcc libc6-dev"},
	"git":               {needProgram("git"), "apt-get install git"},
	"npm-peers":         {needPeers, "npm install --prefix DIR @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory @modelcontextprotocol/server-everything, then set BELLJAR_TEST_NPM=DIR"},
	"spawner-compilers": {needSpawnerCompilers, "apt-get install gcc-x86-64-linux-gnu gcc-aarch64-linux-gnu on Debian 12 (gcc 12.2.0)"},
	"inspector":         {needPeer("@modelcontextprotocol/inspector"), "npm install --prefix DIR @modelcontextprotocol/inspector@1.0.3, then set BELLJAR_TEST_NPM=DIR"},
}

// probes remembers each answer: some probes start a process.
var probes sync.Map // name -> func() error

// Need skips the test unless the machine has every feature named. Where the
// environment variable BELLJAR_CI names a feature (or is "all"), its absence
// fails the test instead. An unknown name fails it always.
func Need(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		f, ok := features[name]
		if !ok {
			t.Fatalf("testkit.Need(%q): no such feature; there are: %s", name, strings.Join(Features(), ", "))
		}
		once, _ := probes.LoadOrStore(name, sync.OnceValue(f.probe))
		err := once.(func() error)()
		if err == nil {
			continue
		}
		why := fmt.Sprintf("needs %s: %v. To have it: %s.", name, err, f.remedy)
		if mustHave(os.Getenv("BELLJAR_CI"), name) {
			t.Fatalf("%s\nBELLJAR_CI=%s makes this a failure.", why, os.Getenv("BELLJAR_CI"))
		}
		t.Skip(why)
	}
}

// Features lists the names that [Need] knows.
func Features() []string {
	names := make([]string, 0, len(features))
	for n := range features {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func mustHave(ci, name string) bool {
	list := strings.FieldsFunc(ci, func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(list, "all") || slices.Contains(list, name)
}

// PeerBin gives the path of a program that an npm package in BELLJAR_TEST_NPM
// installed. Call [Need] first.
func PeerBin(name string) string {
	return filepath.Join(os.Getenv("BELLJAR_TEST_NPM"), "node_modules", ".bin", name)
}

func needRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("this is user %d", uid)
	}
	return nil
}

func needCgroupV1() error {
	for _, c := range []string{"memory", "pids"} {
		if _, err := os.Stat("/sys/fs/cgroup/" + c + "/cgroup.procs"); err != nil {
			return err
		}
	}
	return nil
}

func needUserns() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("clone with a user namespace: %w", err)
	}
	// The child runs no test and ends by itself; how is of no interest.
	_ = cmd.Wait()
	return nil
}

func needProgram(name string) func() error {
	return func() error {
		_, err := exec.LookPath(name)
		return err
	}
}

// needSpawnerCompilers wants the very compilers that made the committed spawner:
// another version gives other bytes for the same source.
func needSpawnerCompilers() error {
	for _, name := range []string{"x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc"} {
		out, err := exec.Command(name, "-dumpfullversion").Output()
		if err != nil {
			return err
		}
		if v := strings.TrimSpace(string(out)); v != "12.2.0" {
			return fmt.Errorf("%s has version %s, not 12.2.0", name, v)
		}
	}
	return nil
}

func needFile(path string) func() error {
	return func() error {
		_, err := os.Stat(path)
		return err
	}
}

func needPeer(pkg string) func() error {
	return func() error {
		root := os.Getenv("BELLJAR_TEST_NPM")
		if root == "" {
			return fmt.Errorf("BELLJAR_TEST_NPM is not set")
		}
		if _, err := exec.LookPath("node"); err != nil {
			return err
		}
		_, err := os.Stat(filepath.Join(root, "node_modules", filepath.FromSlash(pkg), "package.json"))
		return err
	}
}

func needPeers() error {
	for _, name := range []string{"server-filesystem", "server-memory", "server-everything"} {
		if err := needPeer("@modelcontextprotocol/" + name)(); err != nil {
			return err
		}
	}
	return nil
}
