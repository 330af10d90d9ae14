// Package plain makes text from strangers fit to show: what an upstream server
// calls its tools, what a script passed as a path, what a dying process wrote
// last. Such text may hold control sequences, invisible characters that hide
// instructions, or no end; what comes out is valid UTF-8 of bounded length
// without any of them.
package plain
