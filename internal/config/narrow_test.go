package config

import (
	"strings"
	"testing"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/policy"
	"github.com/google/go-cmp/cmp"
)

func TestNarrowing(t *testing.T) {
	tests := []struct {
		name, user, local string
		check             func(c sample) any
		want              any
		ignored           string // keys in the note; "" for no note
	}{
		{"a shorter limit", "", "[limits.script]\ntimeout = \"10s\"\n",
			func(c sample) any { return time.Duration(c.Limits["script"].Timeout) }, 10 * time.Second, ""},
		{"a longer limit than the default", "", "[limits.script]\ntimeout = \"31s\"\n",
			func(c sample) any { return time.Duration(c.Limits["script"].Timeout) }, time.Duration(0), "limits.script.timeout"},
		{"a longer one than configured", "[limits.script]\ntimeout = \"5s\"\n", "[limits.script]\ntimeout = \"10s\"\n",
			func(c sample) any { return time.Duration(c.Limits["script"].Timeout) }, 5 * time.Second, "limits.script.timeout"},
		{"a shorter one than configured", "[limits.script]\ntimeout = \"1m\"\n", "[limits.script]\ntimeout = \"50s\"\n",
			func(c sample) any { return time.Duration(c.Limits["script"].Timeout) }, 50 * time.Second, ""},
		{"zero would be the default", "[policy]\nmax_calls_per_run = 5\n", "[policy]\nmax_calls_per_run = 0\n",
			func(c sample) any { return c.Policy.MaxCallsPerRun }, 5, ""},
		{"negative", "", "[policy]\nmax_calls_per_run = -1\n", func(c sample) any { return c.Policy.MaxCallsPerRun }, 0, "policy.max_calls_per_run"},
		{"fewer processes", "", "[limits.snippet]\nprocesses = 8\n", func(c sample) any { return c.Limits["snippet"].Processes }, int64(8), ""},
		{"less memory", "", "[limits.script]\nmemory = \"64MiB\"\n", func(c sample) any { return c.Limits["script"].Memory }, "64MiB", ""},
		{"more memory", "", "[limits.script]\nmemory = \"1GiB\"\n", func(c sample) any { return c.Limits["script"].Memory }, "", "limits.script.memory"},
		{"memory that is none", "", "[limits.script]\nmemory = \"lots\"\n", func(c sample) any { return c.Limits["script"].Memory }, "", "limits.script.memory"},

		{"a ceiling could lift a configured limit", "[limits.script]\nprocesses = 5\n", "[limits.ceiling]\nprocesses = 60\n",
			func(c sample) any { return c.Limits["ceiling"].Processes }, int64(0), "limits.ceiling.processes"},

		{"denies are added", "[policy]\ndeny = [\"a\"]\n", "[policy]\ndeny = [\"b\", \"a\"]\n", func(c sample) any { return c.Policy.Deny }, []string{"a", "b"}, ""},
		{"denies cannot be emptied", "[policy]\ndeny = [\"a\"]\n", "[policy]\ndeny = []\n", func(c sample) any { return c.Policy.Deny }, []string{"a"}, ""},
		{"extra tools", "", "[policy]\nextra_tools = [\"drop_table\"]\n", func(c sample) any { return c.Policy.ExtraTools }, []string(nil), "policy.extra_tools"},
		{"fewer of the default tools", "", "[policy]\ntools = [\"read-file\", \"drop_table\"]\n", func(c sample) any { return c.Policy.Tools }, []string{"read-file"}, "policy.tools"},
		{"fewer of the configured tools", "[policy]\ntools = [\"x\", \"y\"]\nextra_tools = [\"z\"]\n", "[policy]\ntools = [\"z\", \"x\"]\n",
			func(c sample) any { return [][]string{c.Policy.Tools, c.Policy.ExtraTools} }, [][]string{{"z", "x"}, {}}, ""},
		{"none of them is not all of them", "", "[policy]\ntools = [\"nothing\"]\n",
			func(c sample) any { return [][]string{c.Policy.Tools, c.Policy.Deny} }, [][]string{nil, {"*"}}, "policy.tools"},

		{"a higher minimum", "", "[sandbox]\nminimum = \"gvisor\"\n", func(c sample) any { return c.Sandbox.Minimum }, "gvisor", ""},
		{"a lower minimum", "", "[sandbox]\nminimum = \"process\"\n", func(c sample) any { return c.Sandbox.Minimum }, "", "sandbox.minimum"},
		{"a minimum that is none", "", "[sandbox]\nminimum = \"best\"\n", func(c sample) any { return c.Sandbox.Minimum }, "", "sandbox.minimum"},
		{"lower than configured", "[sandbox]\nminimum = \"gvisor\"\n", "[sandbox]\nminimum = \"namespaces\"\n", func(c sample) any { return c.Sandbox.Minimum }, "gvisor", "sandbox.minimum"},
		{"above what was configured", "[sandbox]\nminimum = \"process\"\n", "[sandbox]\nminimum = \"landlock\"\n", func(c sample) any { return c.Sandbox.Minimum }, "landlock", ""},

		{"no recording", "[audit]\nrequired = true\n", "[audit]\nrequired = false\n", func(c sample) any { return *c.Audit.Required }, true, "audit.required"},
		{"recording", "[audit]\nrequired = false\n", "[audit]\nrequired = true\n", func(c sample) any { return *c.Audit.Required }, true, ""},
		{"what opens something", "", "[workspace]\npath = \"/\"\n[mcp]\nconfig = \"x\"\n[mcp_servers.a]\ncommand = \"sh\"\n[audit]\npath = \"/tmp/x\"\n",
			func(c sample) any { return c.Workspace.Path + c.MCP.Config + c.Audit.Path + c.Servers["a"].Command }, "",
			"audit.path, mcp.config, mcp_servers.a.command, workspace.path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opt := place(t, map[string]string{"user": tt.user, "local": tt.local})
			l := load(t, opt)
			if diff := cmp.Diff(tt.want, tt.check(l.Config)); diff != "" {
				t.Error(diff)
			}
			notes := strings.Join(l.Notes, "\n")
			if tt.ignored == "" && notes != "" || !strings.Contains(notes, tt.ignored) {
				t.Errorf("notes %q, want %q in them", notes, tt.ignored)
			}
		})
	}
}

func TestLocalFileNamed(t *testing.T) {
	opt := place(t, map[string]string{"local": "[workspace]\npath = \"/w\"\n"})
	opt.File = opt.Dir + "/./" + FileName
	l := load(t, opt)
	if l.Config.Workspace.Path != "/w" || len(l.Notes) > 0 || len(l.Files) != 1 {
		t.Errorf("%+v", l)
	}
}

func TestLocalNarrowsTheNamedFile(t *testing.T) {
	opt := place(t, map[string]string{"named": "[sandbox]\nminimum = \"process\"\n", "local": "[sandbox]\nminimum = \"gvisor\"\n"})
	if got := load(t, opt).Config.Sandbox.Minimum; got != "gvisor" {
		t.Errorf("minimum %q", got)
	}
}

// TestCuratedIsPolicys asks policy which tools it offers where nothing is configured.
func TestCuratedIsPolicys(t *testing.T) {
	p, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all []belljar.Tool
	for _, name := range append([]string{"drop_table", "execute_code"}, curated...) {
		all = append(all, belljar.Tool{Name: name, Forms: []string{name}})
	}
	if n := len(p.Offered(all, nil, nil)); n != len(curated) {
		t.Errorf("policy offers %d of the %d curated tools", n, len(curated))
	}
}
