package output

import "testing"

func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"none", nil, ""},
		{"one", []string{"a: is wrong"}, "a: is wrong."},
		{"each ends once", []string{"a ", "b.", "did you mean c?"}, "a.\nb.\ndid you mean c?"},
		{"empty", []string{""}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Sentences(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
