package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/belljar/belljar/jar"
)

// TestKeysExist holds the keys that are named here against the real
// configuration: a rule for a key that was renamed would protect nothing.
func TestKeysExist(t *testing.T) {
	known := keysOf[jar.Config]()
	names := []string{"policy.tools", "policy.extra_tools"}
	for _, n := range narrowing {
		names = append(names, n.key)
	}
	for _, v := range variables {
		names = append(names, v.key)
	}
	for _, name := range names {
		name = strings.Replace(name, "languages.python.", "languages.<name>.", 1)
		if !slices.Contains(known, name) {
			t.Errorf("the configuration has no key %s; it has %s", name, strings.Join(known, ", "))
		}
	}
}
