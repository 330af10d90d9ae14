package toolset

import (
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	names := []string{"path", "pattern", "max_results", "ignore_case", "n", "start_line", "start_page", strings.Repeat("x", 70)}
	for written, want := range map[string]string{
		"max_result": "max_results", "maxResults": "max_results", "max": "max_results", "max-results": "max_results",
		"ignorecase": "ignore_case", "paht": "", "pth": "path", "patern": "pattern", "pat": "path", "start": "", "start_lin": "start_line", "path_name": "path",
		"N": "n", "m": "", "": "", "query": "", "folder": "", "pa\xff\n": "", strings.Repeat("x", 69): "",
	} {
		if got := near(written, names); got != want {
			t.Errorf("%q is near %q, want %q", written, got, want)
		}
	}
	if got := near("x", nil); got != "" {
		t.Errorf("near nothing is %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"path", "path", 0}, {"path", "paht", 2}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("from %q to %q it is %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
