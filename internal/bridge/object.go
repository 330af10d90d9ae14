package bridge

import (
	"errors"
	"unicode/utf8"
)

var (
	errDeep      = errors.New("nested too deep")
	errNotJSON   = errors.New("no valid JSON")
	errNotObject = errors.New("no JSON object")
	errNotUTF8   = errors.New("no valid UTF-8")
)

// checkObject says whether b is one JSON object (RFC 8259) in UTF-8, nested at
// most depth levels. It works before anything is decoded and without recursion,
// so that no input can cost more than one pass over it.
func checkObject(b []byte, depth int) error {
	i := space(b, 0)
	if i == len(b) {
		return errNotJSON
	}
	if b[i] != '{' {
		return errNotObject
	}
	if !utf8.Valid(b) {
		return errNotUTF8
	}
	var few [64]bool
	open := few[:0] // one entry for each open bracket: whether it is an object's
	value := true   // a value must come next; false: a comma or a closing bracket
	for {
		if i = space(b, i); i == len(b) {
			return errNotJSON
		}
		ok := true
		switch c := b[i]; {
		case value && (c == '{' || c == '['):
			if len(open) == depth {
				return errDeep
			}
			open = append(open, c == '{')
			i = space(b, i+1)
			if i < len(b) && b[i] == closing(c == '{') {
				value = false // empty: the closing bracket is dealt with below
				continue
			}
			if c == '{' {
				i, ok = key(b, i)
			}
		case value:
			i, ok = scalar(b, i)
			value = false
		case c == ',':
			i++
			if open[len(open)-1] {
				i, ok = key(b, i)
			}
			value = true
		case c == closing(open[len(open)-1]):
			i++
			if open = open[:len(open)-1]; len(open) == 0 {
				if space(b, i) != len(b) {
					return errNotJSON
				}
				return nil
			}
		default:
			ok = false
		}
		if !ok {
			return errNotJSON
		}
	}
}

func closing(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// key reads a member's name and its colon.
func key(b []byte, i int) (int, bool) {
	i, ok := text(b, space(b, i))
	if !ok {
		return i, false
	}
	i = space(b, i)
	return i + 1, i < len(b) && b[i] == ':'
}

// scalar reads a value that is neither object nor array.
func scalar(b []byte, i int) (int, bool) {
	switch b[i] {
	case '"':
		return text(b, i)
	case 't':
		return word(b, i, "true")
	case 'f':
		return word(b, i, "false")
	case 'n':
		return word(b, i, "null")
	}
	return number(b, i)
}

func word(b []byte, i int, w string) (int, bool) {
	end := i + len(w)
	return end, end <= len(b) && string(b[i:end]) == w
}

func text(b []byte, i int) (int, bool) {
	if i >= len(b) || b[i] != '"' {
		return i, false
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, true
		case c < 0x20:
			return i, false
		case c == '\\':
			if i++; i == len(b) {
				return i, false
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(b) {
					return i, false
				}
				for _, h := range b[i+1 : i+5] {
					if !(h >= '0' && h <= '9' || h >= 'a' && h <= 'f' || h >= 'A' && h <= 'F') {
						return i, false
					}
				}
				i += 4
			default:
				return i, false
			}
		}
	}
	return i, false
}

func number(b []byte, i int) (int, bool) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		var ok bool
		if i, ok = digits(b, i); !ok {
			return i, false
		}
	}
	if i < len(b) && b[i] == '.' {
		var ok bool
		if i, ok = digits(b, i+1); !ok {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i, true
}

func digits(b []byte, i int) (int, bool) {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i, i > from
}
