// Package arch holds the tests that keep the tree in shape: which package may
// import which, and a few rules about files that no compiler checks.
package arch
