package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/belljar/belljar/internal/language"
	"github.com/spf13/cobra"
)

// The flags below keep nil for "not given": a request tells no limit from zero.

// pathFlag reads the name of a file or folder. An empty one is most often a
// variable of a shell that was not set, and must not pass for "not given".
type pathFlag struct {
	at   *string
	what string // file or folder
}

func (f pathFlag) Set(s string) error {
	if s == "" {
		return fmt.Errorf("the name is empty; name a %s", f.what)
	}
	*f.at = s
	return nil
}

func (f pathFlag) String() string { return "" }
func (f pathFlag) Type() string   { return f.what }

// namesFlag reads names, separated by commas. Once it was given its list is not
// nil: an empty one says something too.
type namesFlag struct{ at *[]string }

func (f namesFlag) Set(s string) error {
	if *f.at == nil {
		*f.at = []string{}
	}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "" {
			*f.at = append(*f.at, name)
		}
	}
	return nil
}

func (f namesFlag) String() string { return "" }
func (f namesFlag) Type() string   { return "names" }

// complete lets the shell complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag is not there, or has values already
	}
}

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
