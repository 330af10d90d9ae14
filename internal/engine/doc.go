// Package engine takes one request through the one pipeline there is and gives one
// result, whatever happens on the way.
//
//	admission   sizes, names, limits, language; may this caller run anything?; a slot
//	            in the bounded queue
//	toolchain   the program that runs the language, found once
//	            then: can the journal take records?
//	run         for scripts a bridge is opened; the sandbox runs the program; its
//	            output is captured; how it ended is classified once, from facts
//	            last: one journal record and one metric, on every way out
//
// A call that a script makes over its bridge goes through [Engine.CallTool], which
// is also the way of a direct call: one decision, one record, one metric for both.
//
// How a program ends is data in the result. So is a refusal (we chose not to run).
// A fault (we failed) is logged in full under an id, and the result shows the id.
//
// The engine makes no part itself: what it needs comes as [Parts].
package engine
