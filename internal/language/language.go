package language

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Language is one entry of the registry: the content of a language.toml, checked.
// It is shared and must not be changed.
type Language struct {
	// Name is what the language is called everywhere; also the folder's name.
	Name string `toml:"name"`
	// Aliases are other names that requests may use.
	Aliases []string `toml:"aliases"`
	// Summary is half a sentence for prompts and listings.
	Summary string `toml:"summary"`
	// Extensions of file names, with the dot.
	Extensions []string `toml:"extensions"`
	// Shebang are names of interpreters on a #! line, without a version number.
	Shebang []string `toml:"shebang"`
	// File is the name that the source gets in the workspace.
	File string `toml:"file"`

	Toolchain Toolchain         `toml:"toolchain"`
	Run       Command           `toml:"run"`
	Script    Script            `toml:"script"`
	Limits    Limits            `toml:"limits"`
	Install   map[string]string `toml:"install"`

	folder  fs.FS
	pattern *regexp.Regexp
}

// Toolchain says how the programs of a language are found on a machine.
type Toolchain struct {
	// Candidates in order of preference: absolute paths, or names looked up on PATH.
	Candidates []string `toml:"candidates"`
	// Probe are arguments that make a candidate print one JSON object: version,
	// executable, folders, packages, isolated. {probe} stands for the text of
	// ProbeFile.
	Probe     []string `toml:"probe"`
	ProbeFile string   `toml:"probe_file"`
	// Version are arguments that make any candidate print its version, even one
	// that is too old for Probe; VersionPattern finds it, in its first group.
	Version        []string `toml:"version"`
	VersionPattern string   `toml:"version_pattern"`
	// Minimum is the oldest version that works, as in "3.8".
	Minimum string `toml:"minimum"`
}

// Command is an argument list with what belongs to it. {interpreter} stands for the
// toolchain's program and {file} for the source's name in the workspace.
type Command struct {
	Argv []string          `toml:"argv"`
	Env  map[string]string `toml:"env"`
}

// Script says what a script gets beyond what a snippet gets. A language without it
// cannot call tools.
type Script struct {
	// Folder is where the assets appear in the sandbox, beneath /opt/belljar.
	Folder string `toml:"folder"`
	// Assets are files of the language's folder.
	Assets []string          `toml:"assets"`
	Env    map[string]string `toml:"env"`
}

// Limits are what the language's runtime needs. They raise a default, never a
// limit that a request asked for.
type Limits struct {
	// RuntimeProcesses are the processes and threads that the runtime itself
	// starts; they come on top of what the program may have.
	RuntimeProcesses int64 `toml:"runtime_processes"`
	// Memory is the least under which programs of the language start.
	Memory Size `toml:"memory"`
	// OpenFiles is the least number of descriptors.
	OpenFiles int64 `toml:"open_files"`
}

// Scripts tells whether scripts of the language can call tools.
func (l *Language) Scripts() bool { return l.Script.Folder != "" }

// Argv gives the argument list of a run: the entry's own with the program and the
// source's name in place, then args.
func (l *Language) Argv(interpreter, file string, args []string) []string {
	argv := make([]string, 0, len(l.Run.Argv)+len(args))
	fill := strings.NewReplacer("{interpreter}", interpreter, "{file}", file)
	for _, a := range l.Run.Argv {
		argv = append(argv, fill.Replace(a))
	}
	return append(argv, args...)
}

// ProbeArgs gives the arguments that probe a candidate, nil when the language has
// no probe.
func (l *Language) ProbeArgs() ([]string, error) {
	if len(l.Toolchain.Probe) == 0 {
		return nil, nil
	}
	source, err := l.read(l.Toolchain.ProbeFile)
	if err != nil {
		return nil, err
	}
	args := make([]string, len(l.Toolchain.Probe))
	for i, a := range l.Toolchain.Probe {
		args[i] = strings.ReplaceAll(a, "{probe}", string(source))
	}
	return args, nil
}

// FindVersion finds the version in what Toolchain.Version made a candidate print.
func (l *Language) FindVersion(printed string) string {
	if l.pattern == nil {
		return ""
	}
	if m := l.pattern.FindStringSubmatch(printed); m != nil {
		return m[1]
	}
	return ""
}

// Asset is a file that scripts of a language get.
type Asset struct {
	Name string // absolute, in the sandbox
	Data []byte
}

// Assets reads the files that scripts get.
func (l *Language) Assets() ([]Asset, error) {
	out := make([]Asset, 0, len(l.Script.Assets))
	for _, name := range l.Script.Assets {
		data, err := l.read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, Asset{Name: path.Join(l.Script.Folder, name), Data: data})
	}
	return out, nil
}

func (l *Language) read(name string) ([]byte, error) { return fs.ReadFile(l.folder, name) }

// InstallHint says how to get the language on a system, given the ID and ID_LIKE
// words of its os-release, the nearest first.
func (l *Language) InstallHint(system []string) string {
	for _, id := range system {
		if hint, ok := l.Install[id]; ok {
			return "Install it with: " + hint
		}
	}
	return l.Install["default"]
}
