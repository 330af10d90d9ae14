package workspace

import (
	"fmt"

	"github.com/belljar/belljar/internal/toolset/plain"
)

// A bound is a cap or an end of time that a walk or a search met before it was
// through. What it had found by then would look like an answer and is none, so
// it becomes an error that says how far it came.
type bound struct {
	met    string // what happened, and where
	remedy string
}

func (b bound) Error() string { return b.met + "; " + b.remedy }

// after adds how many results there were by then.
func (b bound) after(n int) error {
	return sentence(fmt.Sprintf("%s, with %d found so far; %s", b.met, n, b.remedy))
}

// A tally holds an answer to its caps: nothing is cut unless the caller said how
// many results are enough.
type tally struct {
	caps   caps
	want   int    // as many are enough; 0: all, and an error when that is more than caps.results
	remedy string // how to ask for less
	n      int
	size   int64 // bytes of the answer so far, as JSON
}

// room makes room for one more result of about that many bytes.
func (t *tally) room(rel string, size int) error {
	if t.want == 0 && t.n >= t.caps.results {
		return sentence(fmt.Sprintf("found more than %d, the next in %s, and returned none of them; %s, or give max_results=N to take the first N (at most %d)",
			t.caps.results, plain.Quote(rel), t.remedy, MaxResults))
	}
	if t.size += int64(size); t.size > t.caps.answer {
		return sentence(fmt.Sprintf("found more than %d, which at %s no longer fit the %s of one answer, and returned none of them; %s, or give max_results=%d to take the first %d",
			t.n, plain.Quote(rel), bytesText(t.caps.answer), t.remedy, max(t.n, 1), max(t.n, 1)))
	}
	t.n++
	return nil
}

// enough ends the walk when the caller has what was asked for.
func (t *tally) enough() error {
	if t.want > 0 && t.n >= t.want {
		return errEnough
	}
	return nil
}

// jsonSize is how long a string is inside a JSON document, at most.
func jsonSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c == 0xe2: // \u00xx; U+2028 begins with e2
			n += 5
		case c == '"' || c == '\\':
			n++
		}
	}
	return n
}

// bytesText writes a cap in the largest unit that divides it.
func bytesText(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); n >= one && n%one == 0 {
			return fmt.Sprintf("%d %s", n/one, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
