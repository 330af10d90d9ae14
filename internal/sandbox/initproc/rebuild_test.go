package initproc

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/belljar/belljar/internal/testkit"
)

// TestSpawnerRebuilds proves that the committed programs are what their source
// says: built again by the same compilers, they are the same bytes.
func TestSpawnerRebuilds(t *testing.T) {
	testkit.Need(t, "spawner-compilers")
	dir := t.TempDir()
	if out, err := exec.Command("spawner/build.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"spawner_amd64", "spawner_arm64"} {
		committed, err := os.ReadFile(filepath.Join("spawner", name))
		if err != nil {
			t.Fatal(err)
		}
		built, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(committed, built) {
			t.Errorf("%s differs from what spawner.c gives; run go generate and commit the result", name)
		}
	}
}
