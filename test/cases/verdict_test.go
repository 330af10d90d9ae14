package cases

import (
	"fmt"
	"sync"
	"testing"
)

// verdict collects what is wrong with a case, so that a case that is known to fail
// can be told from one that fails anew.
type verdict struct {
	testing.TB // for its context and for helpers that want a test

	prefix   string
	problems *[]string
	all      *sync.Mutex // guards problems, which the surfaces of a case share
}

func newVerdict(t testing.TB) *verdict {
	return &verdict{TB: t, problems: &[]string{}, all: &sync.Mutex{}}
}

// on gives a verdict that says where it looked.
func (v *verdict) on(where string) *verdict {
	return &verdict{TB: v.TB, prefix: v.prefix + where + ": ", problems: v.problems, all: v.all}
}

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) {
	v.all.Lock()
	defer v.all.Unlock()
	*v.problems = append(*v.problems, v.prefix+fmt.Sprintf(format, args...))
}

// found gives the problems.
func (v *verdict) found() []string {
	v.all.Lock()
	defer v.all.Unlock()
	return *v.problems
}
