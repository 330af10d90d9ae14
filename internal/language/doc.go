// Package language is the registry of languages: what a language is called, how
// its programs are named and run, which programs of the machine can run it, and
// what scripts get so that they can call tools.
//
// Each language is one folder with a language.toml. The registry is the only list
// of languages; whatever shows languages derives from it. It says nothing about
// whether a language can run here: that is package toolchain.
//
// Files are decoded when they are first needed, since a short command needs at
// most one of them.
package language
