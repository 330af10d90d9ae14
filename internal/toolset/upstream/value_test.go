package upstream

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

func FuzzUnwrap(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAE=","mimeType":"image/png"}],"structuredContent":{"content":[]}}`)
	f.Add(`{"structuredContent":{"result":"x"},"isError":true}`)
	f.Add(`{"content":[{"type":"resource","resource":{"blob":"AA=="}}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := unwrap(json.RawMessage(raw))
		var te *belljar.ToolError
		if err != nil {
			if !errors.As(err, &te) || te.Reason == "" || !utf8.ValidString(te.Reason) {
				t.Errorf("error %#v", err)
			}
			return
		}
		if v.Kind == belljar.ValueText && !utf8.Valid(v.Data) {
			t.Errorf("text is %q", v.Data)
		}
		if v.Kind == belljar.ValueJSON && (!json.Valid(v.Data) || !utf8.Valid(v.Data)) {
			t.Errorf("document is %q", v.Data)
		}
	})
}
