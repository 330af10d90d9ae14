package seccomp

import (
	"path/filepath"
	"testing"
)

// Real programs under the filter on the real kernel: a call that one of them
// needs and the list lacks shows here.

func testFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name)) // programs run in a folder of their own
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestGoProgram(t *testing.T) {
	stdout, stderr, err := helper(t, "go")
	if err != nil || stdout != "go is fine\n" {
		t.Fatalf("%v\nstdout: %s\nstderr: %s", err, stdout, stderr)
	}
}

func TestPython(t *testing.T) {
	if got := underFilter(t, "/usr/bin/python3", testFile(t, "program.py")); got != "python is fine" {
		t.Errorf("got %q", got)
	}
}

func TestGCC(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	underFilter(t, "gcc", "-O0", "-Wall", "-Werror", "-pthread", "-o", program, testFile(t, "program.c"), "-lm")
	if got := underFilter(t, program); got != "42" {
		t.Errorf("the program printed %q", got)
	}
}

func TestNode(t *testing.T) {
	if got := underFilter(t, "node", testFile(t, "program.js")); got != "node is fine" {
		t.Errorf("got %q", got)
	}
}

func TestBash(t *testing.T) {
	if got := underFilter(t, "bash", testFile(t, "program.sh")); got != "bash is fine" {
		t.Errorf("got %q", got)
	}
}
