// Package toolchain finds the programs of this machine that run a language.
//
// A candidate is run once, outside any sandbox, with a tiny program of ours that
// says what it is and where it lives. From the answer come the path of the real
// binary (never a version manager's shim, which costs many times the start of an
// interpreter) and the folders that a sandbox has to show beside /usr. Only folders
// of the toolchain are ever named, never a home or a folder above one.
//
// Answers are kept in the state folder, keyed by the identity of the files they
// depend on, so that a warm start costs a stat and a small read.
package toolchain
