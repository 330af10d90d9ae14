package toolset

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Schemas come from strangers, so reading one is bounded in every direction; what
// does not fit the bounds is treated as unreadable.
const (
	maxSchema     = 64 << 10 // bytes
	maxParams     = 64       // parameters of one tool
	maxTypeDepth  = 4        // nested types
	maxObjects    = 2        // objects within one another that are shown
	maxKeys       = 16       // keys of one object that are shown
	maxAlternates = 4        // alternatives of a union, values of an enum
)

// A schema is one level of a JSON Schema, read lazily: each field is looked at
// when something asks for it. root is where `$ref` points into.
type schema struct {
	fields map[string]json.RawMessage
	root   *schema
	// left is, in a root, how many bytes may still be parsed. References let a
	// small document unfold into an endless one.
	left int
	// defs are, in a root, the definitions read so far, by group.
	defs map[string]*schema
}

// parseSchema reads the top of a schema; nil when it is too large or no object.
func parseSchema(raw json.RawMessage) *schema {
	if len(raw) == 0 || len(raw) > maxSchema {
		return nil
	}
	s := sub(raw, nil)
	if s != nil {
		s.root, s.left = s, 16*maxSchema
	}
	return s
}

func sub(raw json.RawMessage, root *schema) *schema {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	if root != nil {
		if root.left -= len(raw); root.left < 0 {
			return nil
		}
	}
	s := &schema{root: root}
	if json.Unmarshal(raw, &s.fields) != nil {
		return nil
	}
	return s
}

func (s *schema) str(key string) string {
	var v string
	_ = json.Unmarshal(s.fields[key], &v) // not a string: empty
	return v
}

func (s *schema) list(key string) []json.RawMessage {
	var v []json.RawMessage
	if s.root != nil {
		if s.root.left -= len(s.fields[key]); s.root.left < 0 {
			return nil
		}
	}
	_ = json.Unmarshal(s.fields[key], &v) // not a list: nil
	return v
}

// types returns the `type` field, one name or several; nil when there is none.
func (s *schema) types() []string {
	if t := s.str("type"); t != "" {
		return []string{t}
	}
	var v []string
	_ = json.Unmarshal(s.fields["type"], &v) // no list of strings: nil
	return v
}

// deref follows a `$ref` within the document, a few steps at most.
func (s *schema) deref() *schema {
	for range maxTypeDepth {
		ref := s.str("$ref")
		if ref == "" {
			return s
		}
		var group string
		for _, g := range []string{"$defs", "definitions"} {
			if p := "#/" + g + "/"; len(ref) > len(p) && ref[:len(p)] == p {
				group, ref = g, ref[len(p):]
				break
			}
		}
		if group == "" || s.root == nil {
			return s
		}
		defs, read := s.root.defs[group]
		if !read {
			if defs = sub(s.root.fields[group], s.root); s.root.defs == nil {
				s.root.defs = map[string]*schema{}
			}
			s.root.defs[group] = defs
		}
		if defs == nil {
			return s
		}
		next := sub(defs.fields[ref], s.root)
		if next == nil {
			return s
		}
		s = next
	}
	return s
}

// A param is one named parameter, in the order in which the schema writes them.
type param struct {
	name     string
	required bool
	schema   *schema
}

// params returns the parameters of an object schema; ok is false when they cannot
// be read.
func (s *schema) params() (list []param, ok bool) {
	if s == nil {
		return nil, false
	}
	if t := s.types(); len(t) > 0 && !slices.Contains(t, "object") {
		return nil, false
	}
	var required []string
	if raw, has := s.fields["required"]; has && json.Unmarshal(raw, &required) != nil {
		return nil, false
	}
	raw, has := s.fields["properties"]
	if !has {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, false
		}
		name, _ := t.(string) // a key always is one
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, false
		}
		p := param{name: name, required: slices.Contains(required, name), schema: sub(value, s.root)}
		if p.schema == nil { // `true`, or nonsense: anything goes
			p.schema = &schema{root: s.root}
		}
		if i := slices.IndexFunc(list, func(q param) bool { return q.name == name }); i >= 0 {
			list[i] = p // a key written twice: the last counts, as in JSON
			continue
		}
		if len(list) == maxParams {
			return nil, false
		}
		list = append(list, p)
	}
	return list, true
}

// unwrapSchema gives the schema of what a script gets: of an answer that is an
// object with the one key `result` or `content`, what is in it. Nil where it does
// not say: of a list of MCP's own blocks a script gets what is in them.
func unwrapSchema(raw json.RawMessage) json.RawMessage {
	s := parseSchema(raw)
	if s == nil {
		return nil
	}
	list, ok := s.params()
	if !ok || len(list) != 1 || list[0].name != "result" && list[0].name != "content" {
		return raw
	}
	inner := list[0].schema
	if inner.fields == nil || blockList(inner) {
		return nil
	}
	// Definitions stay reachable for the references inside.
	for _, group := range []string{"$defs", "definitions"} {
		if defs, has := s.fields[group]; has && inner.fields[group] == nil {
			inner.fields[group] = defs
		}
	}
	out, err := json.Marshal(inner.fields)
	if err != nil {
		return nil
	}
	return out
}

// blockList reports whether a schema is that of a list of blocks of content.
func blockList(s *schema) bool {
	s = s.deref()
	if !slices.Contains(s.types(), "array") {
		return false
	}
	items := sub(s.fields["items"], s.root)
	if items == nil {
		return false
	}
	items = items.deref()
	alts := slices.Concat(items.list("anyOf"), items.list("oneOf"))
	if len(alts) == 0 {
		return isBlock(items)
	}
	for _, raw := range alts {
		if alt := sub(raw, s.root); alt == nil || !isBlock(alt.deref()) {
			return false
		}
	}
	return true
}

// isBlock reports whether every value of the schema has a type that MCP gives to a
// block.
func isBlock(s *schema) bool {
	list, _ := s.params()
	i := slices.IndexFunc(list, func(p param) bool { return p.name == "type" && p.required })
	if i < 0 {
		return false
	}
	kinds := list[i].schema.list("enum")
	if c, has := list[i].schema.fields["const"]; has {
		kinds = []json.RawMessage{c}
	}
	for _, k := range kinds {
		switch string(bytes.TrimSpace(k)) {
		case `"text"`, `"image"`, `"audio"`, `"resource"`, `"resource_link"`:
		default:
			return false
		}
	}
	return len(kinds) > 0
}
