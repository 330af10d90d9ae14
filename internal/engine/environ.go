package engine

import (
	"path"
	"slices"
	"strings"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/sandbox"
)

const (
	systemPath  = "/usr/local/bin:/usr/bin:/bin"
	runUser     = "belljar" // who the sandbox's /etc/passwd says it is
	maxEnv      = 256
	maxEnvBytes = 128 << 10
	maxArgs     = 1000
	maxArgBytes = 128 << 10 // all together; the kernel takes this much for one
)

// ours are variables that the run's own environment sets.
var ours = []string{"PATH", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP"}

// steering are variables that make a loader, an interpreter or a shell run or load
// something before the program: names, and prefixes that end in *.
var steering = []string{
	"LD_*", "DYLD_*", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_*", "GETCONF_DIR",
	"HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS",
	"PYTHON*", "NODE_*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "LUA_*", "PHPRC", "PHP_INI_SCAN_DIR", "TCLLIBPATH",
	"ERL_*", "ERLC_*", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH",
	"GOROOT", "GOPATH", "GOFLAGS", "GOTOOLCHAIN", "GOENV", "GODEBUG", "RUSTC*", "RUSTFLAGS", "RUSTUP_*", "CARGO_*",
	"DOTNET_*", "R_HOME", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*",
	"BASH_*", "BASHOPTS", "SHELLOPTS", "ENV", "CDPATH", "IFS", "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "ZDOTDIR",
	"GCC_*", "COMPILER_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "DEPENDENCIES_OUTPUT",
	"SUNPRO_DEPENDENCIES",
	"BELLJAR*",
}

// checkEnv says what a request may not set.
func checkEnv(env map[string]string) *belljar.Refusal {
	bad := func(name, why string) *belljar.Refusal {
		return belljar.Refuse(belljar.CodeBadEnv, "Leave it out, or choose another name.", "env may not set %q: %s.", cut(name, 80), why)
	}
	if len(env) > maxEnv {
		return belljar.Refuse(belljar.CodeBadEnv, "Put the values into a file of the request.", "env has %d variables; %d are allowed.", len(env), maxEnv)
	}
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names) // the same request gets the same answer
	total := 0
	for _, name := range names {
		value := env[name]
		if !isVariable(name) {
			return bad(name, "a name is made of letters, digits and _")
		}
		if strings.ContainsRune(value, 0) {
			return bad(name, "its value holds a NUL")
		}
		if slices.Contains(ours, name) {
			return bad(name, "the run's own environment sets it")
		}
		if slices.ContainsFunc(steering, func(s string) bool { return matches(s, name) }) {
			return bad(name, "it would steer what runs before the program")
		}
		if total += len(name) + len(value); total > maxEnvBytes {
			return belljar.Refuse(belljar.CodeBadEnv, "Put the values into a file of the request.", "env holds more than %v.", Size(maxEnvBytes))
		}
	}
	return nil
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return name == pattern
}

func isVariable(name string) bool {
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_':
		case b >= '0' && b <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}

// checkArgs says what cannot be arguments.
func checkArgs(args []string) *belljar.Refusal {
	if len(args) > maxArgs {
		return belljar.Refuse(belljar.CodeBadRequest, "Put the values on stdin or into a file.", "the request has %d arguments; %d are allowed.", len(args), maxArgs)
	}
	total := 0
	for _, a := range args {
		if strings.ContainsRune(a, 0) {
			return belljar.Refuse(belljar.CodeBadRequest, "Put the bytes on stdin or into a file.", "an argument holds a NUL.")
		}
		if total += len(a) + 1; total > maxArgBytes {
			return belljar.Refuse(belljar.CodeBadRequest, "Put the values on stdin or into a file.", "the arguments hold more than %v.", Size(maxArgBytes))
		}
	}
	return nil
}

// environ makes the whole environment of a run, sorted. Nothing is inherited.
func environ(req *belljar.Request, lang *language.Language, program string) []string {
	env := map[string]string{
		"PATH": searchPath(program), "HOME": sandbox.Workspace, "PWD": sandbox.Workspace,
		"TMPDIR": "/tmp", "TEMP": "/tmp", "TMP": "/tmp",
		"USER": runUser, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
	}
	add := func(more map[string]string) {
		for name, value := range more {
			env[name] = value
		}
	}
	add(req.Env)
	add(lang.Run.Env) // after the request's: what the language needs holds
	if req.Kind == belljar.KindScript {
		add(lang.Script.Env)
	}
	out := make([]string, 0, len(env))
	for name, value := range env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// searchPath puts the toolchain's own folder first, so that a program which starts
// "python3" gets the interpreter it runs under.
func searchPath(program string) string {
	dir := path.Dir(program)
	if slices.Contains(strings.Split(systemPath, ":"), dir) {
		return systemPath
	}
	return dir + ":" + systemPath
}
