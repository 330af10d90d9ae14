package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/belljar/belljar/internal/language"
)

// The flags below keep nil for "not given": a request tells no limit from zero.

// sizeFlag reads 512MiB.
type sizeFlag struct{ at **int64 }

func (f sizeFlag) Set(s string) error {
	n, err := language.ParseSize(s)
	if err != nil {
		return err
	}
	v := int64(n)
	*f.at = &v
	return nil
}

func (f sizeFlag) String() string { return "" }
func (f sizeFlag) Type() string   { return "size" }

// timeFlag reads 5s, 500ms or a number of seconds.
type timeFlag struct{ at **int64 }

func (f timeFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		sec, nerr := strconv.ParseFloat(s, 64)
		if nerr != nil || math.IsNaN(sec) || math.Abs(sec) > 1e9 {
			return fmt.Errorf("%q is no duration; write for example 5s or 1m30s", s)
		}
		d = time.Duration(sec * float64(time.Second))
	}
	ms := int64(math.Ceil(float64(d) / float64(time.Millisecond)))
	*f.at = &ms
	return nil
}

func (f timeFlag) String() string { return "" }
func (f timeFlag) Type() string   { return "duration" }

// countFlag reads a whole number.
type countFlag struct{ at **int64 }

func (f countFlag) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no whole number", s)
	}
	*f.at = &n
	return nil
}

func (f countFlag) String() string { return "" }
func (f countFlag) Type() string   { return "number" }
