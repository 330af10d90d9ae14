package language

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes that is written as "512MiB" in configuration: a whole
// number and one of B, KiB, MiB, GiB, TiB, or of kB, MB, GB, TB (powers of 1000).
// A number alone is bytes.
type Size int64

var units = []struct {
	suffix string
	factor int64
}{ // longest first, since "B" ends them all
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1},
}

// ParseSize reads a Size. A negative one is an error.
func ParseSize(s string) (Size, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	factor := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size; write it like 512MiB", s)
	}
	if n > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return Size(n * factor), nil
}

// UnmarshalText reads a Size from configuration.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	*s = v
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String writes the size in the largest unit that divides it.
func (s Size) String() string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	n, u := int64(s), 0
	for n != 0 && n%1024 == 0 && u < len(names)-1 {
		n /= 1024
		u++
	}
	return strconv.FormatInt(n, 10) + names[u]
}
