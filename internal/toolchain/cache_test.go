package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/languages"
	"github.com/google/go-cmp/cmp"
)

func TestCache(t *testing.T) {
	m := newMachine(t)
	path := m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{})
	l := lang(t, path)
	file := filepath.Join(m.state, "toolchain/moon.json")
	want := m.find(m.finder(nil), l)
	asked := func() int { return len(m.calls("a/bin/fake3")) }
	if asked() != 1 {
		t.Fatalf("asked %d times", asked())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("cache file: %v, %v", info, err)
	}

	f := m.finder(nil)
	if diff := cmp.Diff(want, m.find(f, l)); diff != "" || asked() != 1 {
		t.Errorf("from the cache, asked %d times: %s", asked(), diff)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	n := asked()
	spoil := func(name string, change func()) {
		t.Helper()
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		change()
		if diff := cmp.Diff(want, m.find(m.finder(nil), l)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if n++; asked() != n {
			t.Errorf("%s: asked %d times, want %d", name, asked(), n)
		}
		_ = os.Chmod(file, 0o600)
	}
	replace := func(old, new string) func() {
		return func() {
			if !strings.Contains(string(good), old) {
				t.Fatalf("no %s in %s", old, good)
			}
			m.write("state/toolchain/moon.json", strings.Replace(string(good), old, new, 1), 0o600)
		}
	}
	spoil("gone", func() { _ = os.Remove(file) })
	spoil("no JSON", func() { m.write("state/toolchain/moon.json", "{", 0o600) })
	spoil("writable by others", func() { _ = os.Chmod(file, 0o666) })
	spoil("another release", replace(`"entry":"`, `"entry":"x`))
	spoil("another file", replace(`"size":`, `"size":1`))
	spoil("no stamps", replace(`"stamps":[`, `"stamps":[],"x":[`))
	spoil("a home as a folder", replace(`"folders":["`+filepath.Join(m.dir, "a")+`"`, `"folders":["`+filepath.Join(m.dir, "home/ann")+`"`))
	spoil("a relative path", replace(`"path":"`+path+`","folders"`, `"path":"fake3","folders"`))
	spoil("behind a link", func() {
		if err := os.Rename(file, file+".real"); err != nil {
			t.Fatal(err)
		}
		m.link(file+".real", "state/toolchain/moon.json")
	})
	_ = os.Remove(file)
	spoil("a folder", func() {
		_ = os.Remove(file)
		if err := os.Mkdir(file, 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if left, err := filepath.Glob(filepath.Join(m.state, "toolchain/.toolchain-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNoState(t *testing.T) {
	m := newMachine(t)
	path := m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{})
	m.state = ""
	m.find(m.finder(nil), lang(t, path))
	m.state = m.write("file", "", 0o600) // no folder can be made beneath it
	m.find(m.finder(nil), lang(t, path))
	if n := len(m.calls("a/bin/fake3")); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestManyInterpreters(t *testing.T) {
	m := newMachine(t)
	for i := range maxRecords + 4 {
		path := m.fake(fmt.Sprintf("v%d/bin/fake3", i), answer{Version: "3.11"}, behaviour{})
		m.find(m.finder(Config{"moon": {Interpreter: path}}), lang(t, "x"))
	}
	text, err := os.ReadFile(filepath.Join(m.state, "toolchain/moon.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c cacheFile
	if err := json.Unmarshal(text, &c); err != nil || len(c.Records) != maxRecords {
		t.Errorf("%d records, %v", len(c.Records), err)
	}
	if !strings.Contains(c.Records[0].Asked, fmt.Sprintf("v%d/", maxRecords+3)) {
		t.Errorf("the newest is %s", c.Records[0].Asked)
	}
}

func TestCancelled(t *testing.T) {
	m := newMachine(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("client went away")
	cancel(why)
	_, err := m.finder(nil).Find(ctx, lang(t, m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{})))
	if !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

// Many runs at a cold start probe once.
func TestHammer(t *testing.T) {
	m := newMachine(t)
	l := lang(t, m.fake("a/bin/fake3", answer{Version: "3.11"}, behaviour{}))
	f := m.finder(nil)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if tc, err := f.Find(context.Background(), l); err != nil || tc.Version != "3.11" {
					t.Errorf("%+v, %v", tc, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(m.calls("a/bin/fake3")); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func BenchmarkWarm(b *testing.B) {
	r, err := language.Open(languages.FS)
	if err != nil {
		b.Fatal(err)
	}
	py, err := r.Resolve("python", nil)
	if err != nil {
		b.Fatal(err)
	}
	state := b.TempDir()
	if _, err := New(nil, state).Find(context.Background(), py); err != nil {
		b.Fatal(err)
	}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			if _, err := New(nil, state).Find(context.Background(), py); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("run", func(b *testing.B) {
		f := New(nil, state)
		for b.Loop() {
			if _, err := f.Find(context.Background(), py); err != nil {
				b.Fatal(err)
			}
		}
	})
}
