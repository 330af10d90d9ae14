package audit

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/belljar/belljar"
)

// Checks reports to doctor whether the journal can be written, where it is and
// how much it holds.
func (j *Journal) Checks(ctx context.Context) []belljar.Check {
	c := belljar.Check{Name: "journal", State: belljar.CheckOK}
	err := j.Ready(ctx)
	var count, bytes int64
	if err == nil {
		err = j.read(ctx, func(db *database) error {
			var err error
			count, err = db.number("SELECT count(*) FROM records")
			return err
		})
	}
	if err != nil {
		c.State, c.Meaning = belljar.CheckFail, err.Error()
		var r *belljar.Refusal
		if errors.As(err, &r) {
			c.Meaning, c.Remedy = r.Reason, r.Hint
		}
		return []belljar.Check{c}
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(j.path + suffix); err == nil {
			bytes += info.Size()
		}
	}
	c.Meaning = fmt.Sprintf("%s is writable and holds %d records in %.1f MiB.", j.path, count, float64(bytes)/(1<<20))
	if why := j.foldErr.Load(); why != nil {
		c.State, c.Meaning, c.Remedy = belljar.CheckWarn, c.Meaning+" Its log grows: "+why.Reason, why.Hint
	}
	return []belljar.Check{c}
}
