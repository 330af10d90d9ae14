package cases

// known are the cases that fail, each with what is missing. An entry that passes
// fails the test: it has to go.
var known = map[string]string{}

// varies are the cases whose output differs between a script and a snippet, each
// with the reason.
var varies = map[string]string{
	"env-scrub": "it prints the names of all variables, and a script has PYTHONPATH for the client of the bridge",
}

// long are the cases that take seconds; -short leaves them out.
var long = map[string]bool{}
