package toolset

import "testing"

// TestExactNameWins: of two tools of one server that come to one name, the one that
// has it as it is keeps it.
func TestExactNameWins(t *testing.T) {
	for _, order := range [][]string{{"dup-x", "dup_x", "dup.x"}, {"dup.x", "dup_x", "dup-x"}} {
		var claims []claim
		for _, original := range order {
			claims = append(claims, claim{server: "s", original: original, name: "dup_x"})
		}
		given, errs := assign(map[string]string{}, claims)
		if got := given["s\x00dup_x"]; got != "dup_x" {
			t.Errorf("%v: dup_x is called %q", order, got)
		}
		// One of the others gets the prefixed name; there is none left for the third.
		if len(given) != 2 || len(errs) != 1 {
			t.Errorf("%v: %v %v", order, given, errs)
		}
	}
	given, errs := assign(map[string]string{}, []claim{{"a", "read-file", "read_file"}, {"b", "read_file", "read_file"}})
	if given["a\x00read-file"] != "a_read_file" || given["b\x00read_file"] != "b_read_file" || len(errs) != 0 {
		t.Errorf("two servers: %v %v", given, errs)
	}
}
