// Package workspace reads the folder that the operator opened for scripts: whole
// files and ranges of lines, listings, finding by name and searching by content.
//
// A script names the paths and may be hostile, and other programs may change the
// folder while it is read. So every path is opened beneath the folder through
// [os.Root], which follows a link only where it stays inside; a walk follows no
// link at all; only regular files are read, opened in a way that cannot hang on
// a pipe; and every answer has a cap on bytes, entries, depth and matches, with
// an error that says which one was met instead of a silent cut. Nothing is ever
// written. Errors are sentences for the script and hold no path of the host.
package workspace
