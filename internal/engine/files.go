package engine

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox"
)

// Bounds of what a request brings along.
const (
	maxFiles     = 1000
	maxFileBytes = 32 << 20 // all files together, decoded
	maxNameBytes = 1024
	maxPartBytes = 255 // what Linux file systems take
	maxDepth     = 32
)

// checkName says why a name cannot be a file of the workspace; "" when it can. The
// files are written by our own hand, so this is the one place that decides.
func checkName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxNameBytes:
		return "is too long"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return "holds a control character"
	case strings.HasPrefix(name, "/"):
		return "is absolute"
	case strings.Contains(name, `\`):
		return "holds a backslash"
	}
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return "lies too deep"
	}
	for _, p := range parts {
		switch {
		case p == "":
			return "has an empty part"
		case p == "." || p == "..":
			return fmt.Sprintf("must not contain %q", p)
		case len(p) > maxPartBytes:
			return "has a part that is too long"
		}
	}
	return ""
}

// nameHint goes with every refused file name.
const nameHint = "Use relative names with forward slashes, like data/a.csv."

// checkFiles decodes the files of a request and puts the source before them. Every
// problem of a name is found before anything is made.
func checkFiles(files []belljar.File, sourceName, source string) ([]sandbox.File, *belljar.Refusal) {
	bad := func(name, why string) *belljar.Refusal {
		return belljar.Refuse(belljar.CodeBadFileName, nameHint, "the file name %q %s.", cut(name, 80), why)
	}
	if why := checkName(sourceName); why != "" {
		return nil, bad(sourceName, why)
	}
	// A name that begins with a dash would be read as an option.
	if strings.Contains(sourceName, "/") || strings.HasPrefix(sourceName, "-") {
		return nil, bad(sourceName, "cannot be the source's name")
	}
	if len(files) > maxFiles {
		return nil, belljar.Refuse(belljar.CodeBadRequest, "Send fewer files, or one archive that the program unpacks.",
			"the request has %d files; %d are allowed.", len(files), maxFiles)
	}
	out := make([]sandbox.File, 0, len(files)+1)
	out = append(out, sandbox.File{Name: sourceName, Data: []byte(source)})
	taken := map[string]bool{sourceName: true} // names of files
	folders := map[string]bool{}
	total := 0
	for _, f := range files {
		if why := checkName(f.Name); why != "" {
			return nil, bad(f.Name, why)
		}
		switch {
		case f.Name == sourceName:
			return nil, bad(f.Name, "is that of the source")
		case taken[f.Name]:
			return nil, bad(f.Name, "is there twice")
		case folders[f.Name]:
			return nil, bad(f.Name, "is also a folder of another file")
		}
		taken[f.Name] = true
		for i, c := range f.Name {
			if c != '/' {
				continue
			}
			if taken[f.Name[:i]] {
				return nil, bad(f.Name, "has another file as its folder")
			}
			folders[f.Name[:i]] = true
		}
		data, refusal := decode(f)
		if refusal != nil {
			return nil, refusal
		}
		if total += len(data); total > maxFileBytes {
			return nil, belljar.Refuse(belljar.CodeBadRequest, "Send less, or let the script fetch it through a tool.",
				"the files of the request hold more than %v together.", Size(maxFileBytes))
		}
		out = append(out, sandbox.File{Name: f.Name, Data: data})
	}
	return out, nil
}

func decode(f belljar.File) ([]byte, *belljar.Refusal) {
	switch f.Encoding {
	case "", "utf8":
		return []byte(f.Content), nil
	case "base64":
		data, err := base64.StdEncoding.Strict().DecodeString(f.Content)
		if err != nil {
			return nil, belljar.Refuse(belljar.CodeBadRequest, "Encode it with the standard alphabet and padding.",
				"the content of the file %q is no base64.", cut(f.Name, 80))
		}
		return data, nil
	}
	return nil, belljar.Refuse(belljar.CodeBadRequest, "Use utf8 or base64.",
		"the file %q has the unknown encoding %q.", cut(f.Name, 80), cut(f.Encoding, 20))
}

// space is what files take on the run's file system: whole pages, and one for each
// name.
func space(files []sandbox.File) int64 {
	const page = 4096
	total := int64(0)
	for _, f := range files {
		total += (int64(len(f.Data))+page-1)/page*page + page
	}
	return total
}

// cut gives the first n characters of s, for a message.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
