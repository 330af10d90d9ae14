package toolchain

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// host is what the finder asks about the machine; tests bring their own.
type host struct {
	getenv    func(string) string
	environ   func() []string
	passwd    string // path of the list of users
	osRelease []string
}

func thisHost() host {
	return host{getenv: os.Getenv, environ: os.Environ, passwd: "/etc/passwd", osRelease: []string{"/etc/os-release", "/usr/lib/os-release"}}
}

// bareEnv is the environment of a probe: nothing of the operator's that could bend
// the answer.
func (h host) bareEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "LC_ALL=C.UTF-8"}
}

// shimEnv is bareEnv with what a version manager needs to make its choice.
func (h host) shimEnv() []string {
	env := []string{"LC_ALL=C.UTF-8"}
	for _, kv := range h.environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "PATH", name == "HOME",
			strings.HasPrefix(name, "PYENV_"), strings.HasPrefix(name, "ASDF_"), strings.HasPrefix(name, "MISE_"), strings.HasPrefix(name, "XDG_"):
			env = append(env, kv)
		}
	}
	return env
}

// choiceFiles are the files by which a version manager's choice is changed without
// touching its shim.
func (h host) choiceFiles(shim string) []string {
	out := []string{filepath.Join(filepath.Dir(filepath.Dir(shim)), "version")} // pyenv global
	if home := h.getenv("HOME"); filepath.IsAbs(home) {
		out = append(out, filepath.Join(home, ".tool-versions"), filepath.Join(home, ".config/mise/config.toml"))
	}
	return out
}

// shown are the folders that every sandbox shows.
var shown = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}

// never are folders of which nothing is shown, not even what is beneath them.
var never = []string{"/etc", "/proc", "/sys", "/dev", "/run", "/var/run", "/boot"}

// tooWide are folders too wide to be a toolchain; what is beneath them may be
// one.
var tooWide = []string{"/", "/home", "/root", "/var", "/var/lib", "/tmp", "/var/tmp", "/opt", "/srv", "/mnt", "/media"}

// under tells whether path is dir or beneath it.
func under(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

func visible(path string, folders []string) bool {
	for _, dir := range shown {
		if under(path, dir) {
			return true
		}
	}
	for _, dir := range folders {
		if under(path, dir) {
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// folders decides what to bind so that program starts: the folders it named that
// are not visible anyway, where they really are, and the homes of the links that
// lead to it. All of them must be fit to be shown.
func (h host) folders(program string, named []string) ([]string, error) {
	var want []string
	add := func(dir string) {
		if dir = filepath.Clean(dir); !visible(dir, nil) && !contains(want, dir) {
			want = append(want, dir)
		}
	}
	for _, dir := range named {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("it names %q as its folder, which is no absolute path", dir)
		}
		add(dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, fmt.Errorf("its folder %s is not there", dir)
		}
		add(real)
	}
	links, err := hops(program)
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		if visible(link, want) {
			continue
		}
		dir := filepath.Dir(link)
		if filepath.Base(dir) == "bin" {
			dir = filepath.Dir(dir)
		}
		add(dir)
	}
	for _, dir := range want {
		if under(dir, "/nix/store") { // packages there refer to one another
			add("/nix/store")
		}
	}
	want = outermost(want)
	if err := h.checkFolders(want); err != nil {
		return nil, err
	}
	return want, nil
}

// hops lists a program's path and everything that its links lead over.
func hops(path string) ([]string, error) {
	out := []string{path}
	for range 40 {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, fmt.Errorf("%s is not there", path)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				return nil, fmt.Errorf("%s is not there", path)
			}
			return append(out, real), nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return nil, fmt.Errorf("%s is not there", path)
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
		out = append(out, path)
	}
	return nil, fmt.Errorf("%s is a loop of links", path)
}

// outermost drops folders that are beneath another one of the list.
func outermost(dirs []string) []string {
	slices.Sort(dirs)
	var out []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(out, func(o string) bool { return under(dir, o) }) {
			out = append(out, dir)
		}
	}
	return out
}

// checkFolders tells which folder is not fit to be shown to a run: a home, a folder
// above one, or a place of the system that no toolchain lives in.
func (h host) checkFolders(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	homes := h.homes()
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return fmt.Errorf("its folder %s is not there", dir)
		}
		for _, d := range []string{filepath.Clean(dir), real} {
			if !filepath.IsAbs(d) || contains(tooWide, d) {
				return fmt.Errorf("it lives in %s, which is too wide to be shown to a run", d)
			}
			for _, n := range never {
				if under(d, n) {
					return fmt.Errorf("it lives in %s, which is never shown to a run", d)
				}
			}
			for _, home := range homes {
				if under(home, d) {
					return fmt.Errorf("it lives in %s, and a home folder is never shown to a run; use a virtual environment in a folder of its own", d)
				}
			}
		}
	}
	return nil
}

// homes lists the home folders of people: of the user who runs this, of root, and
// of every ordinary user. A machine's service users have /usr or /var as home.
func (h host) homes() []string {
	homes := []string{"/root"}
	add := func(dir string) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			return
		}
		homes = append(homes, filepath.Clean(dir))
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" {
			homes = append(homes, real)
		}
	}
	add(h.getenv("HOME"))
	file, err := os.Open(h.passwd)
	if err != nil {
		return homes
	}
	defer file.Close()
	me := strconv.Itoa(os.Getuid())
	for scan := bufio.NewScanner(file); scan.Scan(); {
		f := strings.Split(scan.Text(), ":")
		if len(f) < 6 {
			continue
		}
		if uid, err := strconv.Atoi(f[2]); err == nil && (uid >= 1000 && uid < 60000 || f[2] == me) {
			add(f[5])
		}
	}
	return homes
}

// system gives the words by which the os-release file names this system, the
// nearest first.
func (h host) system() []string {
	for _, path := range h.osRelease {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var id, like []string
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			value = strings.Trim(value, `"'`)
			switch key {
			case "ID":
				id = strings.Fields(value)
			case "ID_LIKE":
				like = strings.Fields(value)
			}
		}
		return append(id, like...)
	}
	return nil
}
