package cases

// known are the cases that fail, each with what is missing. An entry that passes
// fails the test: it has to go.
var known = map[string]string{
	"art-flood-py": "files that a run leaves are not collected yet",
	"art-special":  "files that a run leaves are not collected yet",
}

// racy are the cases that fail now and then, each with the reason. Passing proves
// nothing there.
var racy = map[string]string{}

// varies are the cases whose output differs between a script and a snippet, each
// with the reason.
var varies = map[string]string{
	"env-scrub":          "it prints the names of all variables, and a script has PYTHONPATH for the client of the bridge",
	"fs-write-system-py": "it tells a missing folder from a read-only one, and a script has /opt/belljar",
}

// alone are the cases that take the processors from every other program of this
// machine; beside them nothing else would start within its own limits.
var alone = map[string]bool{
	"time-threads-py": true,
}

// long are the cases that take many seconds; -short leaves them out.
var long = map[string]bool{
	"sc-mixed-py": true, "time-deaf-py": true, "time-finally-py": true, "time-unflushed": true, "time-threads-py": true, "mem-objects-py": true,
	"mem-shared-py": true, "iso-repeat-py": true, "sc-crashes-py": true, "dsk-inodes-py": true, "out-flood": true, "cli-ansi-split": true,
}
