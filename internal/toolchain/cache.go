package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/belljar/belljar/internal/language"
)

// record is one answer and what it depends on.
type record struct {
	Asked     string    `json:"asked"` // the candidate's path
	Shim      bool      `json:"shim,omitempty"`
	Stamps    []stamp   `json:"stamps"`
	Toolchain Toolchain `json:"toolchain"`
}

// stamp is the identity of a file. All zero but the path: there is none, and its
// appearance is a change.
type stamp struct {
	Path  string `json:"path"`
	Dev   uint64 `json:"dev"`
	Inode uint64 `json:"inode"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"` // nanoseconds
}

func stampOf(path string) stamp {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return stamp{Path: path}
	}
	return stamp{Path: path, Dev: uint64(st.Dev), Inode: st.Ino, Size: st.Size, MTime: st.Mtim.Nano()}
}

func (r *record) fresh() bool {
	for _, s := range r.Stamps {
		if stampOf(s.Path) != s {
			return false
		}
	}
	return len(r.Stamps) > 0
}

// maxRecords bounds the file: more interpreters than this are not in turn use.
const maxRecords = 16

// cache is one language's file. Without a folder it holds nothing. It is a matter
// of speed alone: whatever is wrong with it, the answer is to probe again.
type cache struct {
	path    string
	content cacheFile
}

type cacheFile struct {
	// Entry is the digest of the language's description: another release asks
	// other questions.
	Entry   string   `json:"entry"`
	Records []record `json:"records"`
}

// entryDigest identifies what the answers of a language depend on besides files.
func entryDigest(l *language.Language) (string, error) {
	probe, err := l.ProbeArgs()
	if err != nil {
		return "", err
	}
	t := l.Toolchain
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat(probe, t.Version, []string{t.VersionPattern, t.Minimum}), "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

func openCache(state, lang, digest string) *cache {
	c := &cache{content: cacheFile{Entry: digest}}
	if state == "" {
		return c
	}
	c.path = filepath.Join(state, "toolchain", lang+".json")
	text, ok := readOwn(c.path)
	if !ok {
		return c
	}
	var old cacheFile
	if json.Unmarshal(text, &old) == nil && old.Entry == digest && len(old.Records) <= maxRecords {
		c.content = old
	}
	return c
}

// readOwn reads a small file only if it is ours and nobody else could write it: its
// content names folders that runs will see.
func readOwn(path string) ([]byte, bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 {
		return nil, false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil, false
	}
	const most = 256 << 10
	text, err := io.ReadAll(io.LimitReader(file, most))
	return text, err == nil && len(text) < most
}

// get gives a fresh record for a candidate.
func (c *cache) get(asked string) *record {
	for i := range c.content.Records {
		r := &c.content.Records[i]
		if r.Asked == asked && filepath.IsAbs(r.Toolchain.Path) && r.fresh() {
			return r
		}
	}
	return nil
}

// put keeps a record, the newest first, and writes the file.
func (c *cache) put(r *record) {
	if c.path == "" {
		return
	}
	records := []record{*r}
	for _, old := range c.content.Records {
		if old.Asked != r.Asked && len(records) < maxRecords {
			records = append(records, old)
		}
	}
	c.content.Records = records
	text, err := json.Marshal(c.content)
	if err != nil {
		return
	}
	dir := filepath.Dir(c.path)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	// CreateTemp makes the file 0600; the rename makes readers see all of it or
	// none.
	file, err := os.CreateTemp(dir, ".toolchain-*")
	if err != nil {
		return
	}
	_, werr := file.Write(text)
	cerr := file.Close()
	if werr != nil || cerr != nil || os.Rename(file.Name(), c.path) != nil {
		_ = os.Remove(file.Name())
	}
}
