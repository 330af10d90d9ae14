// Package sandbox runs one program at a time in one isolated place and says what
// protected it.
package sandbox
