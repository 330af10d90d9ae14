package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func hello(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "hello")
	cmd := exec.Command("gcc", "-O0", "-x", "c", "-o", bin, "-")
	src := "#include <stdio.h>\nint main(void){puts(\"hello\");return 0;}\n"
	cmd.Stdin = strings.NewReader(src)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v %s", err, out)
	}
	return bin
}

func BenchmarkBareC(b *testing.B) {
	bin := hello(b)
	for b.Loop() {
		if _, err := exec.Command(bin).Output(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkC(b *testing.B) {
	bin := hello(b)
	h := open(b)
	for b.Loop() {
		s := &Spec{Argv: []string{bin}, Toolchain: []string{filepath.Dir(bin)}, Limits: defaults()}
		if e, err := h.Run(context.Background(), s); err != nil || e.Wait != 0 {
			b.Fatal(e, err)
		}
	}
}

func BenchmarkBarePython(b *testing.B) {
	for b.Loop() {
		if _, err := exec.Command("/usr/bin/python3.11", "-I", "-c", "print('hello')").Output(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPython(b *testing.B) {
	h := open(b)
	for b.Loop() {
		s := &Spec{Argv: []string{"/usr/bin/python3.11", "-I", "-c", "print('hello')"}, Env: []string{"PATH=/usr/bin:/bin", "HOME=/workspace"}, Limits: defaults()}
		if e, err := h.Run(context.Background(), s); err != nil || e.Wait != 0 {
			b.Fatal(e, err)
		}
	}
}
