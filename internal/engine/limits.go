package engine

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/language"
	"github.com/belljar/belljar/internal/output"
)

// Size is a number of bytes, written as "512MiB".
type Size = language.Size

// Limits bound one kind of run. Zero leaves a value to the table before: built in,
// kind, language.
type Limits struct {
	Timeout     time.Duration `toml:"timeout"`      // wall clock of the program
	Memory      Size          `toml:"memory"`       // all processes together
	Processes   int64         `toml:"processes"`    // and threads, beyond what the language's runtime needs
	Disk        Size          `toml:"disk"`         // all that the run can write
	Inodes      int64         `toml:"inodes"`       // files and folders it can make
	OutputBytes Size          `toml:"output_bytes"` // both streams; past it the run is stopped
	OutputChars int           `toml:"output_chars"` // of output in the text for a model
	OpenFiles   int64         `toml:"open_files"`   // descriptors of one process
}

// LimitsConfig is the table [limits].
//
// A value that is configured for a kind or a language is its default and the most
// that a request can get. Where nothing is configured a request may ask for more
// than the built-in default, up to the built-in ceiling. [limits.ceiling] replaces
// both.
type LimitsConfig struct {
	Script   Limits            `toml:"script"`
	Snippet  Limits            `toml:"snippet"`
	Language map[string]Limits `toml:"language"`
	Ceiling  Limits            `toml:"ceiling"`
	// Runs is how many runs there are at once, default the number of processors
	// and at least 2. Queue is how many more may wait, default 256; the next one
	// is refused.
	Runs  int `toml:"runs"`
	Queue int `toml:"queue"`
}

// Built-in values: what a kind gets, and how much a request may ask for.
var (
	scriptDefaults = Limits{Timeout: 30 * time.Second, Memory: 512 << 20, Processes: 64, Disk: 64 << 20, Inodes: 10000,
		OutputBytes: 16 << 20, OutputChars: output.DefaultChars, OpenFiles: 1024}
	snippetDefaults = Limits{Timeout: 5 * time.Second, Memory: 512 << 20, Processes: 64, Disk: 64 << 20, Inodes: 10000,
		OutputBytes: 16 << 20, OutputChars: 20000, OpenFiles: 1024}
	builtInCeiling = Limits{Timeout: 5 * time.Minute, Memory: 2 << 30, Processes: 512, Disk: 1 << 30, Inodes: 10000,
		OutputBytes: 64 << 20, OutputChars: 20000, OpenFiles: 1024}
)

const (
	leastMemory = 8 << 20
	leastDisk   = 64 << 10
)

// Least is the least of each limit that a request may ask for; below it nothing can
// start, and the answer would be a riddle. What is zero here cannot be asked for.
func Least() Limits {
	return Limits{Timeout: time.Millisecond, Memory: leastMemory, Processes: 1, Disk: leastDisk, OutputBytes: 1}
}

// mostDuration keeps a timeout in milliseconds and a timer in nanoseconds whole.
const mostDuration = 365 * 24 * time.Hour

// DefaultQueue is how many runs may wait for a slot.
const DefaultQueue = 256

// MostRuns is the most runs that one engine can have at once, a bound of the
// sandbox.
const MostRuns = 60

// Problems lists what is wrong with the configuration.
func (c LimitsConfig) Problems(languages []string) []string {
	var out []string
	check := func(table string, l Limits) {
		v := reflect.ValueOf(l)
		for i := range v.NumField() {
			if v.Field(i).Int() < 0 {
				out = append(out, fmt.Sprintf("limits.%s.%s: is negative", table, v.Type().Field(i).Tag.Get("toml")))
			}
		}
		if l.Timeout > 0 && l.Timeout < time.Millisecond || l.Timeout > mostDuration {
			unit := ""
			if l.Timeout < time.Millisecond { // a bare number is nanoseconds
				unit = `; write it with its unit, as in "5s"`
			}
			out = append(out, fmt.Sprintf("limits.%s.timeout: %v is not between 1ms and a year%s", table, l.Timeout, unit))
		}
		if l.Memory > 0 && l.Memory < leastMemory {
			out = append(out, fmt.Sprintf("limits.%s.memory: no program starts in less than %v", table, Size(leastMemory)))
		}
		if l.Disk > 0 && l.Disk < leastDisk {
			out = append(out, fmt.Sprintf("limits.%s.disk: must be at least %v", table, Size(leastDisk)))
		}
	}
	check("script", c.Script)
	check("snippet", c.Snippet)
	check("ceiling", c.Ceiling)
	for name, l := range c.Language {
		if !slices.Contains(languages, name) {
			out = append(out, fmt.Sprintf("limits.language.%s: there is no such language", name))
		}
		check("language."+name, l)
	}
	if c.Runs < 0 || c.Runs > MostRuns {
		out = append(out, fmt.Sprintf("limits.runs: %d is not between 1 and %d", c.Runs, MostRuns))
	}
	if c.Queue < 0 {
		out = append(out, "limits.queue: is negative")
	}
	slices.Sort(out)
	return out
}

// over lays the values of l that are set over base.
func (l Limits) over(base Limits) Limits {
	b, v := reflect.ValueOf(&base).Elem(), reflect.ValueOf(l)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			b.Field(i).Set(v.Field(i))
		}
	}
	return base
}

// capped brings every value of l down to the ceiling.
func (l Limits) capped(ceiling Limits) Limits {
	v, c := reflect.ValueOf(&l).Elem(), reflect.ValueOf(ceiling)
	for i := range v.NumField() {
		v.Field(i).SetInt(min(v.Field(i).Int(), c.Field(i).Int()))
	}
	return l
}

// Bounds gives what a run of a kind gets when it asks for nothing and the most it
// can ask for. A nil language leaves its needs out.
func (c LimitsConfig) Bounds(kind belljar.Kind, lang *language.Language) (standard, ceiling Limits) {
	standard, own := scriptDefaults, c.Script
	if kind == belljar.KindSnippet {
		standard, own = snippetDefaults, c.Snippet
	}
	ceiling = builtInCeiling
	if lang != nil {
		needs := lang.Limits
		standard.Memory = max(standard.Memory, needs.Memory)
		standard.OpenFiles = max(standard.OpenFiles, needs.OpenFiles)
		ceiling.Memory = max(ceiling.Memory, needs.Memory)
		ceiling.OpenFiles = max(ceiling.OpenFiles, needs.OpenFiles)
		own = c.Language[lang.Name].over(own)
	}
	ceiling = c.Ceiling.over(own.over(ceiling))
	return own.over(standard).capped(ceiling), ceiling
}

// apply decides the limits of one run: what it asked for, brought down to the
// ceiling, or the standard.
func (c LimitsConfig) apply(req *belljar.Request, lang *language.Language) (belljar.Limits, *belljar.Refusal) {
	standard, ceiling := c.Bounds(req.Kind, lang)
	var refusal *belljar.Refusal
	pick := func(name string, asked *int64, least, standard, ceiling int64) int64 {
		if asked == nil {
			return standard
		}
		if *asked < least && refusal == nil {
			hint := fmt.Sprintf("Give a number from %d to %d, or leave it out for %d.", least, ceiling, standard)
			refusal = belljar.Refuse(belljar.CodeBadLimit, hint, "limits.%s is %d, and the least that makes sense is %d.", name, *asked, least)
		}
		return min(*asked, ceiling)
	}
	ask, least := req.Limits, Least()
	l := belljar.Limits{
		TimeoutMS:   pick("timeout_ms", ask.TimeoutMS, least.Timeout.Milliseconds(), standard.Timeout.Milliseconds(), ceiling.Timeout.Milliseconds()),
		MemoryBytes: pick("memory_bytes", ask.MemoryBytes, int64(least.Memory), int64(standard.Memory), int64(ceiling.Memory)),
		Processes:   pick("processes", ask.Processes, least.Processes, standard.Processes, ceiling.Processes),
		DiskBytes:   pick("disk_bytes", ask.DiskBytes, int64(least.Disk), int64(standard.Disk), int64(ceiling.Disk)),
		OutputBytes: pick("output_bytes", ask.OutputBytes, int64(least.OutputBytes), int64(standard.OutputBytes), int64(ceiling.OutputBytes)),
		Inodes:      standard.Inodes,
		OpenFiles:   standard.OpenFiles,
	}
	if lang != nil {
		l.Processes += lang.Limits.RuntimeProcesses
	}
	return l, refusal
}
