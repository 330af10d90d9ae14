package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/belljar/belljar"
)

func redactor(t testing.TB, cfg Config) *Redactor {
	t.Helper()
	r, err := cfg.Redactor()
	if err != nil {
		t.Fatalf("Redactor: %v", err)
	}
	return r
}

func TestArgs(t *testing.T) {
	cases := []struct {
		name string
		cfg  Config
		in   string
		want string
	}{
		{"nothing", Config{}, ``, ``},
		{"plain", Config{}, `{"path":"a.txt","n":3,"x":[true,null,-1.5e3],"o":{}}`, `{"path":"a.txt","n":3,"x":[true,null,-1.5e3],"o":{}}`},
		{"spaces go", Config{}, " { \"a\" : [ 1 , 2 ] } ", `{"a":[1,2]}`},
		{"secret key", Config{}, `{"password":"hunter2","user":"ann"}`, `{"password":"[redacted]","user":"ann"}`},
		{"any case", Config{}, `{"API_KEY":"v","ApiKey":"v","X-Auth-Token":"v"}`, `{"API_KEY":"[redacted]","ApiKey":"[redacted]","X-Auth-Token":"[redacted]"}`},
		{"any depth", Config{}, `{"a":[{"b":{"client_secret":"v"}}]}`, `{"a":[{"b":{"client_secret":"[redacted]"}}]}`},
		{"whole value of any type", Config{}, `{"secrets":{"a":[1,{"b":"x]"}]},"token":17,"c":1}`, `{"secrets":"[redacted]","token":"[redacted]","c":1}`},
		{"escaped key", Config{}, `{"pass\u0077ord":"v"}`, `{"password":"[redacted]"}`},
		{"key given twice", Config{}, `{"token":"v","token":"w"}`, `{"token":"[redacted]","token":"[redacted]"}`},
		{"token in a value", Config{}, `{"cmd":"curl -H 'Authorization: Bearer abcdefgh12345' x"}`, `{"cmd":"curl -H 'Authorization: [redacted] x"}`},
		{"env text in a value", Config{}, `{"content":"A=1\nDB_PASSWORD=hunter2\nB=2"}`, `{"content":"A=1\nDB_PASSWORD=[redacted]\nB=2"}`},
		{"token as a key", Config{}, `{"ghp_abcdefghijklmnop1234":1}`, `{"[redacted]":1}`},
		{"own keys replace the default", Config{Redact: []string{"^pin$", "iban"}}, `{"pin":"1","spin":"2","iban":"3","password":"4"}`, `{"pin":"[redacted]","spin":"2","iban":"[redacted]","password":"4"}`},
		{"no keys, but shapes", Config{Redact: []string{}}, `{"password":"x","k":"AKIAABCDEFGHIJKLMNOP"}`, `{"password":"x","k":"[redacted]"}`},
		{"configured secret", Config{Secrets: []string{"correct horse"}}, `{"a":"say correct horse twice","b":["correct horse"]}`, `{"a":"say [redacted] twice","b":["[redacted]"]}`},
		{"configured secret, escaped", Config{Secrets: []string{"p\"w<é>\\x"}}, `{"a":"p\"w\u003c\u00e9>\\x"}`, `{"a":"[redacted]"}`},
		{"configured secret as a number", Config{Secrets: []string{"87654321"}}, `{"pin":87654321,"n":8765}`, `{"pin":"[redacted]","n":8765}`},
		{"short secrets are ignored", Config{Secrets: []string{"true", "12345", "  a  "}}, `{"a":true,"b":"12345"}`, `{"a":true,"b":"12345"}`},
		{"longer secret first", Config{Secrets: []string{"abcdef", "abcdefghij"}}, `{"a":"abcdefghij"}`, `{"a":"[redacted]"}`},
		{"no document", Config{}, "rm\x00 -rf", `"rm\u0000 -rf"`},
		{"unfinished document", Config{}, `{"password":"hunter2`, `"{\"password\":[redacted]"`},
		{"two documents", Config{}, `{} {}`, `"{} {}"`},
		{"bad literal", Config{}, `{"a":nul}`, `"{\"a\":nul}"`},
		{"missing comma", Config{}, `{"a":1 "b":2}`, `"{\"a\":1 \"b\":2}"`},
		{"wrong bracket", Config{}, `{"a":[1}`, `"{\"a\":[1}"`},
		{"row of digits", Config{}, `{"a":` + strings.Repeat("4", 65) + `}`, `{"a":"[long number]"}`},
		{"not UTF-8", Config{}, "{\"a\":\"\xff\"}", `{"a":"` + "\uFFFD" + `"}`},
		{"control characters stay escaped", Config{}, `{"a":"\u001b[31m\u007f"}`, `{"a":"\u001b[31m\u007f"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := redactor(t, c.cfg).Args(c.in)
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("not JSON: %s", got)
			}
		})
	}
}

func TestArgsBounds(t *testing.T) {
	long := strings.Repeat("é", 1<<16)
	var flat, deep strings.Builder
	flat.WriteString(`{"first":1`)
	for i := range 20_000 {
		fmt.Fprintf(&flat, `,"k%d":%d`, i, i)
	}
	flat.WriteString(`}`)
	deep.WriteString(strings.Repeat("[", 1<<17) + strings.Repeat("]", 1<<17))
	cases := []struct{ name, in, want string }{
		{"long string", `{"a":"` + long + `","b":1}`, "bytes in all]"},
		{"many members", flat.String(), `"…":"…[cut, `},
		{"many elements", "[0" + strings.Repeat(",1", 1<<17) + "]", `,"…[cut, `},
		{"deep", deep.String(), "[nested too deeply]"},
		{"long key", `{"` + long + `":1}`, "bytes in all]"},
		{"long text", long, "bytes in all]"},
		{"what grows when it is escaped", strings.Repeat("\x01", 1<<16), `\u0001…[cut, 65536 bytes in all]`},
		{"the same in a document", `{"a":"` + strings.Repeat(`\u0001`, 1<<16) + `"}`, `\u0001…[cut, 65536 bytes in all]`},
		{"a long secret", `{"token":"` + long + `","b":1}`, `{"token":"[redacted]","b":1}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := redactor(t, Config{}).Args(c.in)
			if len(got) > maxArgs+512 {
				t.Errorf("%d bytes are kept", len(got))
			}
			if !json.Valid([]byte(got)) || !utf8.ValidString(got) {
				t.Errorf("not JSON: …%s", got[len(got)-100:])
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q is missing in %.200s", c.want, got)
			}
		})
	}
}

// A secret that reaches over the place of the cut must not show its first part.
func TestCutInsideSecret(t *testing.T) {
	const secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
	own := strings.Repeat("S3cr3t-", 40)
	r := redactor(t, Config{Secrets: []string{own}})
	for pad := maxArgs - 100; pad < maxArgs+slack+len(own)+100; pad += 53 {
		for _, s := range []string{secret, own} {
			text := strings.Repeat("x ", pad/2) + s + " end"
			in, _ := json.Marshal(map[string]string{"a": text})
			for what, got := range map[string]string{"args": r.Args(string(in)), "text": r.Args(text)} {
				if strings.Contains(got, s[:7]) {
					t.Fatalf("%s shows the beginning of the secret at %d: …%s", what, pad, got[len(got)-80:])
				}
			}
		}
	}
	for pad := 100; pad < 4*maxSummary+slack+len(own)+100; pad += 17 {
		// What is taken out early moves the end nearer.
		text := own + " " + strings.Repeat("x ", pad/2) + secret
		if got := r.Summary(text); strings.Contains(got, secret[:7]) {
			t.Fatalf("summary shows the beginning of the secret at %d: %s", pad, got)
		}
	}
}

func TestShapes(t *testing.T) {
	secrets := map[string]string{
		"openai":       "sk-proj-abcdefghijklmnop1234",
		"stripe":       "sk_live_abcdefghij1234",
		"github":       "ghp_abcdefghijklmnopqrst1234",
		"github fine":  "github_pat_11ABCDEFG0123456789_abcdef",
		"gitlab":       "glpat-abcdefghijklmnop1234",
		"aws":          "AKIAIOSFODNN7EXAMPLE",
		"google":       "AIzaSyA1234567890abcdefghijklmnopqrstuv",
		"slack":        "xoxb-123456789012-abcdefghij",
		"npm":          "npm_abcdefghijklmnopqrstuvwxyz0123456789",
		"jwt":          "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
		"jwt unsigned": "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
		"private key":  "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcd\nefgh\n-----END RSA PRIVATE KEY-----",
		"key, no end":  "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
	}
	r := redactor(t, Config{})
	for name, secret := range secrets {
		t.Run(name, func(t *testing.T) {
			body := strings.TrimPrefix(secret, "-----BEGIN ")
			doc, err := json.Marshal(map[string]string{"a": secret})
			if err != nil {
				t.Fatal(err)
			}
			for what, got := range map[string]string{
				"text":    r.Text("before " + secret),
				"args":    r.Args(string(doc)),
				"summary": r.Summary("before " + secret),
			} {
				if strings.Contains(got, body[len(body)/2:]) || !strings.Contains(got, redacted) {
					t.Errorf("%s: %s", what, got)
				}
			}
		})
	}
	for _, plain := range []string{
		"a task-based risk-averse desk-clerk", "see https://example.org/a:b@c", "sk-short", "10:30 - 11:00", "basic maths", "bearer of news",
		"eyJ is how they begin", "the AKIA prefix", "x := y == z", "http://host:8080/path", "-----BEGIN CERTIFICATE-----",
	} {
		if got := r.Text(plain); got != plain {
			t.Errorf("Text(%q) = %q", plain, got)
		}
	}
}

func TestPairs(t *testing.T) {
	cases := []struct{ in, want string }{
		{"PASSWORD=hunter2", "PASSWORD=[redacted]"},
		{"password : hunter2, user: ann", "password : [redacted] user: ann"},
		{`"api_key": "a b\"c", "x": 1`, `"api_key": [redacted], "x": 1`},
		{`token='a b' next`, `token=[redacted] next`},
		{`token="never closed`, `token=[redacted]`},
		{"Authorization: Bearer abc", "Authorization: [redacted]"},
		{"Authorization: token abc def", "Authorization: [redacted] def"},
		{"?token=abc&x=1", "?token=[redacted]"},
		{"secret := compute(x)", "secret := [redacted]"},
		{"PASS_SECRET=a,b;c&d\"e')f}g rest", "PASS_SECRET=[redacted] rest"},
		{"secret=", "secret="},
		{"secret=\nnext=1", "secret=\nnext=1"},
		{"password: [redacted]", "password: [redacted]"},
		{"a=b=token=c", "a=b=token=[redacted]"},
		{"=:=", "=:="},
		{"the password is hunter2", "the password is hunter2"},
	}
	r := redactor(t, Config{})
	for _, c := range cases {
		t.Run(c.in, func(t *testing.T) {
			got := r.Text(c.in)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := r.Text(got); again != got {
				t.Errorf("a second time gives %q", again)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"one line", "fine", "fine"},
		{"lines become one", "  a\r\n\tb\n\nc  ", "a b c"},
		{"no control or direction characters", "a\x1b[31mb\x00c\u202ed\u200be", "a [31mb cde"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"exactly 200 characters", strings.Repeat("é", 200), strings.Repeat("é", 200)},
		{"201 characters", strings.Repeat("é", 201), strings.Repeat("é", 200)},
		{"long line without a space", strings.Repeat("x", 1<<16), strings.Repeat("x", 200)},
		{"long JSON line", `{"k":1,"token":"abc","l":"` + strings.Repeat("x", 1<<16) + `"}`, `{"k":1,"token":[redacted],"l":"` + strings.Repeat("x", 169)},
		{"secret key in a JSON answer", `{"user": "ann", "password": {"x": "hunter2"}}`, `{"user":"ann","password":"[redacted]"}`},
		{"secret key in a text", "USER=ann\nPASSWORD=hunter2\n", "USER=ann PASSWORD=[redacted]"},
		{"user and password in an address", "at https://ann:hunter2@example.org/x", "at https://[redacted]@example.org/x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := redactor(t, Config{}).Summary(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRedactorRefuses(t *testing.T) {
	for name, redact := range map[string][]string{"not an expression": {"ok", "(["}, "empty": {""}} {
		t.Run(name, func(t *testing.T) {
			_, err := Config{Redact: redact}.Redactor()
			var r *belljar.Refusal
			if !errors.As(err, &r) || r.Code != belljar.CodeBadConfig || !strings.Contains(r.Reason, "audit.redact") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRedactorHammer(t *testing.T) {
	r := redactor(t, Config{Secrets: []string{"very secret"}})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				got := r.Args(fmt.Sprintf(`{"key%d_%d":"very secret","password":"x","t":"Bearer abcdefghij"}`, g, i))
				want := fmt.Sprintf(`{"key%d_%d":"[redacted]","password":"[redacted]","t":"Bearer [redacted]"}`, g, i)
				if got != want {
					t.Errorf("got %s", got)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(r.known); n > maxKeysKnown {
		t.Errorf("%d keys are remembered", n)
	}
}

// FuzzRedactor: whatever comes, what is kept is bounded, well formed, and free of
// the secrets that were named.
func FuzzRedactor(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"password":"x"}`, `[[[`, `{"a":"\ud800"}`, "\xff", `{"a":{"token":[1,2,{"b":"\\\""}]},"c":"canary-5up3rs3cret"}`,
		"Authorization: Basic canary-5up3rs3cret", "-----BEGIN PRIVATE KEY-----", `{"canary-5up3rs3cret":0}`} {
		f.Add(s)
	}
	const secret = "canary-5up3rs3cret"
	r := redactor(f, Config{Secrets: []string{secret}})
	f.Fuzz(func(t *testing.T, s string) {
		args, summary := r.Args(s), r.Summary(s)
		if s != "" && !json.Valid([]byte(args)) {
			t.Errorf("args are no JSON: %q", args)
		}
		if len(args) > maxArgs+1024 || utf8.RuneCountInString(summary) > maxSummary {
			t.Errorf("%d bytes of args, %d characters of summary", len(args), utf8.RuneCountInString(summary))
		}
		if strings.Contains(args, secret) || strings.Contains(summary, secret) {
			t.Errorf("secret kept: %q, %q", args, summary)
		}
		if strings.ContainsFunc(summary, unicode.IsControl) || strings.Contains(args, "\x00") {
			t.Errorf("control characters kept: %q, %q", args, summary)
		}
		if json.Valid([]byte(s)) && strings.HasPrefix(s, "{") {
			var v map[string]any
			if json.Unmarshal([]byte(args), &v) != nil {
				t.Errorf("an object became %s", args)
			}
			if p, ok := v["password"]; ok && p != redacted {
				t.Errorf("password kept: %s", args)
			}
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	r := redactor(b, Config{Secrets: []string{"some secret value"}})
	text := strings.Repeat("def f(x: int) -> str:\n    return str(x)\n", 400)
	b.ReportAllocs()
	for b.Loop() {
		r.Args(`{"path":"src/main.py","max_chars":20000}`)
		r.Summary(text)
	}
}
