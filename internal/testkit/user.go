package testkit

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// PlainUID is an ordinary user id that owns nothing: what [AsUser] is usually
// called with.
const PlainUID = 65534

const childMark = "BELLJAR_TEST_AS_USER"

// AsUser runs the calling test as an ordinary user. It returns true where the
// test should go on: in a process of that user. As root it starts this test
// alone again as user uid, hands its output on, and returns false:
//
//	if !testkit.AsUser(t, testkit.PlainUID) {
//		return
//	}
//
// In the new process HOME and TMPDIR are folders of that user. A process that
// is an ordinary user's already goes on as it is.
func AsUser(t *testing.T, uid int) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	if os.Getenv(childMark) != "" {
		t.Fatal("testkit.AsUser: still root after giving it up")
	}
	dir := publicDir(t, uid)
	bin := filepath.Join(dir, "test")
	// The go command builds test binaries in folders that only their owner may enter.
	copyFile(t, "/proc/self/exe", bin)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-test.run="+exactly(t.Name()), "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), childMark+"=1", "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"),
		"XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), Groups: []uint32{}}}
	out, err := cmd.CombinedOutput()
	text := string(out)
	switch {
	case err != nil:
		t.Errorf("as user %d: %v\n%s", uid, err, text)
	case strings.Contains(text, "--- SKIP"):
		// A skip inside is this test's skip; Need has already turned it into a
		// failure where it must not be one.
		t.Skipf("as user %d:\n%s", uid, text)
	case !strings.Contains(text, "--- PASS"):
		t.Errorf("as user %d the test did not run:\n%s", uid, text)
	}
	return false
}

// exactly is the -test.run pattern that selects the named test alone.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// publicDir makes a folder that everybody may enter, with home and tmp owned by
// uid. t.TempDir would not do: its parents are the owner's alone.
func publicDir(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "testkit-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	err = os.Chmod(dir, 0o755)
	for _, sub := range []string{"home", "tmp"} {
		path := filepath.Join(dir, sub)
		err = errors.Join(err, os.Mkdir(path, 0o700), os.Chown(path, uid, uid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
