//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommittedTablesAreWhatTheSourcesGive(t *testing.T) {
	if err := checkNames(); err != nil {
		t.Fatal(err)
	}
	for _, target := range targets {
		t.Run(target.goArch, func(t *testing.T) {
			want, err := render(target)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join("..", target.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s is out of date (-sources +committed); run go generate in the folder above and review the change:\n%s", target.file, diff)
			}
		})
	}
}
