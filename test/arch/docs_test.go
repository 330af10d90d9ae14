package arch

import (
	"os"
	"strings"
	"testing"

	"github.com/belljar/belljar"
)

// TestRefusalsAreDocumented: every code leads to a line of docs/refusals.md.
func TestRefusalsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/refusals.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, info := range belljar.Codes {
		if !strings.Contains(string(text), `<a id="`+info.Doc+`"></a>`+"`"+string(code)+"`") {
			t.Errorf("docs/refusals.md has no line with the anchor %q for %s", info.Doc, code)
		}
	}
}
