// Package policy decides whether a tool may be called or a run may start.
//
// There is one question and one answer, whoever asks: a bridged call of a script
// and a direct call of an agent go through the same [Policy.Decide], so that a
// script can never do what its caller could not, and the reason text is the same
// on every surface.
//
// The questions are asked in a fixed order, and the first "no" wins:
//
//  1. Does the tool exist, and may scripts reach it at all?
//  2. Is it inside this turn's fence?
//  3. Is it disabled by the operator's deny list?
//  4. Has the run a call left?
//
// What a script may reach (the bridged set) is built from three lists. Only the
// first two are the operator's, and a request can never reach past them:
//
//	policy.tools set?   the request's tools?   bridged set
//	no                  no                     the curated set and policy.extra_tools
//	yes                 no                     policy.tools and policy.extra_tools
//	no                  yes                    the request's tools
//	yes                 yes                    the request's tools that are in policy.tools or policy.extra_tools
//
// So whoever wants a ceiling that no request can lift sets policy.tools. A
// request's own list is complete: policy.extra_tools is not added to it. The deny
// list, the fence and the never-bridged set win over all of these.
//
// Names are compared in every form a tool has (as scripts call it, as its source
// calls it, prefixed with its source), upper and lower case distinct, with "-",
// "." and space counting as "_", so that no renaming slips past a list.
package policy
