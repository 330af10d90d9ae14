package bridge

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEnvironmentsOwnSitecustomize: ours stands first on the path and runs the one
// that it hides.
func TestEnvironmentsOwnSitecustomize(t *testing.T) {
	client, err := filepath.Abs("../../languages/python")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"import builtins, sys\nbuiltins.SITE = __file__.startswith(sys.path[0])\nsys.path.append('/added')\n": "True _Tools /added True\n",
		"":            "none _Tools - True\n",
		"import nope": "none _Tools - True\n", // Python says so on stderr and goes on
	} {
		dir := t.TempDir()
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("python3", "-c", "import builtins, sys, sitecustomize\n"+
			"print(getattr(builtins, 'SITE', 'none'), type(tools).__name__, '/added' if '/added' in sys.path else '-', sitecustomize.__file__.startswith(sys.argv[1]))", client)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + client + ":" + dir}
		out, err := cmd.Output()
		if err != nil || string(out) != want {
			t.Errorf("%q: %v %q, want %q", text, err, out, want)
		}
	}
}
