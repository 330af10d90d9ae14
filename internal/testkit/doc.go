// Package testkit holds what the tests of several packages share: what a test
// needs of the machine ([Need]), whether it left anything behind ([LeakCheck]),
// how to run it as an ordinary user ([AsUser]), and things outside the sandbox
// that a run must never reach ([NewCanary]).
//
// A test that cannot run here skips, and only through [Need], so that a build
// which must not skip can say so: the environment variable BELLJAR_CI lists the
// features whose absence is a failure ("root,userns,python"), or says "all".
package testkit
