package seccomp

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"testing"
)

func TestCompileRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		name, arch string
		profile    Profile
	}{
		{"architecture", "riscv64", Default},
		{"no architecture", "", Default},
		{"profile", "amd64", "lax"},
		{"no profile", "amd64", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f, err := Compile(c.arch, c.profile); err == nil || f != nil {
				t.Errorf("got %v, %v; want no filter and an error", f, err)
			}
		})
	}
}

func TestHashIsOfTheBytes(t *testing.T) {
	hashes := map[string]string{}
	for _, x := range expectations {
		f := compile(t, x.arch)
		sum := sha256.Sum256(f.Bytes())
		if want := "sha256:" + hex.EncodeToString(sum[:]); f.Hash() != want {
			t.Errorf("%s: hash %s, want %s", x.arch, f.Hash(), want)
		}
		if other, ok := hashes[f.Hash()]; ok {
			t.Errorf("%s and %s have one hash", x.arch, other)
		}
		hashes[f.Hash()] = x.arch
	}
}

// A filter must not depend on the order of a map or on which build made it:
// its hash stands in results.
func TestCompilingAgainGivesTheSameBytes(t *testing.T) {
	for range 20 {
		f, err := newFilter(profileNode(auditAMD64, callsAMD64[:]))
		if err != nil {
			t.Fatal(err)
		}
		if want := compile(t, "amd64"); f.Hash() != want.Hash() {
			t.Fatalf("hash %s, want %s", f.Hash(), want.Hash())
		}
	}
}

func TestHammer(t *testing.T) {
	var s slot // fresh, so that the first compilation is contended
	var wg sync.WaitGroup
	filters := make([]*Filter, 32)
	for i := range filters {
		wg.Go(func() {
			f, err := s.get(func() *node { return profileNode(auditARM64, callsARM64[:]) })
			if err != nil {
				t.Error(err)
				return
			}
			filters[i] = f
			for nr := range uint32(100) {
				if _, err := f.Evaluate(auditARM64, nr, [6]uint64{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, f := range filters {
		if f == nil || f != filters[0] {
			t.Errorf("caller %d got filter %p, caller 0 got %p", i, f, filters[0])
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newFilter(profileNode(auditAMD64, callsAMD64[:])); err != nil {
			b.Fatal(err)
		}
	}
}
