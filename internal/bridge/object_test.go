package bridge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckObject(t *testing.T) {
	cases := []struct {
		in   string
		want error
	}{
		{`{}`, nil},
		{" \t\r\n{ } \n", nil},
		{`{"a":1}`, nil},
		{`{"a":[],"b":{},"c":[[]],"d":[{}],"":""}`, nil},
		{`{"a":[1,-0,0.5,1e9,1E-2,2e+3,-1.25e7,true,false,null,"x"]}`, nil},
		{`{"a":"\"\\\/\b\f\n\r\t\u00e9\uD834"}`, nil},
		{"{\"a\":\"\u2028\x7f\"}", nil},
		{` { "a" : 1 , "b" : [ 2 , 3 ] } `, nil},
		{`{"a":1,"a":2}`, nil},
		{``, errNotJSON},
		{`  `, errNotJSON},
		{`[]`, errNotObject},
		{`1`, errNotObject},
		{`"{}"`, errNotObject},
		{`null`, errNotObject},
		{"\ufeff{}", errNotObject},
		{"{\"a\":\"\xff\"}", errNotUTF8},
		{"{\"a\":\"\xed\xa0\x80\"}", errNotUTF8}, // a surrogate
		{`{`, errNotJSON},
		{`}`, errNotObject},
		{`{}}`, errNotJSON},
		{`{}{}`, errNotJSON},
		{`{} x`, errNotJSON},
		{`{]`, errNotJSON},
		{`{"a"}`, errNotJSON},
		{`{"a":}`, errNotJSON},
		{`{"a" 1}`, errNotJSON},
		{`{"a":1,}`, errNotJSON},
		{`{,"a":1}`, errNotJSON},
		{`{"a":1 "b":2}`, errNotJSON},
		{`{a:1}`, errNotJSON},
		{`{1:1}`, errNotJSON},
		{`{"a":[1,]}`, errNotJSON},
		{`{"a":[,1]}`, errNotJSON},
		{`{"a":[1 2]}`, errNotJSON},
		{`{"a":[1}`, errNotJSON},
		{`{"a":[}]`, errNotJSON},
		{`{"a":01}`, errNotJSON},
		{`{"a":+1}`, errNotJSON},
		{`{"a":.5}`, errNotJSON},
		{`{"a":1.}`, errNotJSON},
		{`{"a":1e}`, errNotJSON},
		{`{"a":-}`, errNotJSON},
		{`{"a":0x1}`, errNotJSON},
		{`{"a":NaN}`, errNotJSON},
		{`{"a":tru}`, errNotJSON},
		{`{"a":truee}`, errNotJSON},
		{"{\"a\":\"\n\"}", errNotJSON},
		{"{\"a\x00\":1}", errNotJSON},
		{`{"a":"\x41"}`, errNotJSON},
		{`{"a":"\u12g4"}`, errNotJSON},
		{`{"a":"\u123`, errNotJSON},
		{`{"a":"\`, errNotJSON},
		{`{"a":"`, errNotJSON},
		{`{"a":'b'}`, errNotJSON},
		{`{"a":1}/*c*/`, errNotJSON},
		{nested(8), nil},
		{nested(9), errDeep},
		{nested(100_000), errDeep},
		{strings.Repeat(`{"a":[`, 4) + strings.Repeat("]}", 4), nil},
		{strings.Repeat(`{"a":[`, 4) + "[]" + strings.Repeat("]}", 4), errDeep},
		{`{"a":"[[[[[[[[[[[["}`, nil},
	}
	for _, c := range cases {
		if got := checkObject([]byte(c.in), 8); !errors.Is(got, c.want) {
			t.Errorf("%.60q: %v, want %v", c.in, got, c.want)
		}
	}
}

func nested(n int) string {
	return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
}

// FuzzCheckObject compares with encoding/json, which recurses but is right.
func FuzzCheckObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,-0.5e+3,true,null,"\u00e9\n"],"b":{"c":{}}}`, `{"a":[1}`, `{"a":01}`, nested(300), "{\"\xff\":1}", `{} {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := checkObject(b, 256)
		var v map[string]any
		valid := json.Valid(b) && utf8.Valid(b) && json.Unmarshal(b, &v) == nil && v != nil
		switch {
		case err == nil && !valid:
			t.Errorf("%q was taken", b)
		case err != nil && valid && !errors.Is(err, errDeep):
			t.Errorf("%q was refused: %v", b, err)
		case errors.Is(err, errDeep) && strings.Count(string(b), "{")+strings.Count(string(b), "[") <= 256:
			t.Errorf("%q is not deep", b)
		}
	})
}

func BenchmarkCheckObject(b *testing.B) {
	in := []byte(`{"text":"` + strings.Repeat("The quick brown fox. ", 1000) + `"}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if err := checkObject(in, 256); err != nil {
			b.Fatal(err)
		}
	}
}
