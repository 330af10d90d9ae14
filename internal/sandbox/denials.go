package sandbox

import (
	"github.com/belljar/belljar"
	"github.com/belljar/belljar/internal/sandbox/initproc"
)

// processDenial is known from the control group's counter of refused forks.
var processDenial = belljar.Denial{Kind: "limit", What: "processes",
	Explain: "The run asked for more processes and threads than its limit allows, and was refused."}

// diskDenials are inferred: nothing counts the writes that a full file system
// refused, but a run that left none of its space or names free has met the limit.
func diskDenials(st initproc.Status) []belljar.Denial {
	var out []belljar.Denial
	if st.NoSpace {
		out = append(out, belljar.Denial{Kind: "limit", What: "disk", Likely: true,
			Explain: "The run filled the space that its workspace, /tmp and /dev/shm have together; writes fail with \"No space left on device\"."})
	}
	if st.NoInodes {
		out = append(out, belljar.Denial{Kind: "limit", What: "inodes", Likely: true,
			Explain: "The run made as many files and folders as it may; making more fails with \"No space left on device\"."})
	}
	return out
}
