package seccomp

import (
	"cmp"
	"slices"
)

// field is the byte offset of a 32-bit word in struct seccomp_data on a
// little-endian machine.
type field uint32

const (
	fieldNumber field = 0
	fieldArch   field = 4

	dataSize = 64 // number, architecture, instruction pointer, six arguments
)

// low is the half of argument i that an int parameter of the kernel keeps.
func low(i int) field { return field(16 + 8*i) }

// high is the half of argument i that an int parameter of the kernel drops.
func high(i int) field { return field(20 + 8*i) }

const allBits = ^uint32(0)

// node is one decision. A leaf (no spans) is an action. Otherwise the word at
// field, masked, is looked up in spans: span i holds the values from its first
// up to the first of span i+1. The first span starts at 0, firsts rise, and
// neighbours lead to different nodes, so there are at least two.
type node struct {
	action Action
	field  field
	mask   uint32
	spans  []span
}

type span struct {
	first uint32
	to    *node
}

func (n *node) leaf() bool { return n.spans == nil }

// same reports whether two nodes are one target. Nodes with spans are compared
// by identity: equal ones that were built apart only cost a few instructions.
func same(a, b *node) bool {
	return a == b || a.leaf() && b.leaf() && a.action == b.action
}

func answer(a Action) *node { return &node{action: a} }

// branch is one way out of a decision: the values from first to last.
type branch struct {
	first, last uint32
	to          *node
}

func on(v uint32, to *node) branch { return branch{v, v, to} }

// choose builds a decision on a word. Values of no branch lead to otherwise.
// Branches may come in any order but must not overlap.
func choose(f field, mask uint32, otherwise *node, branches ...branch) *node {
	slices.SortFunc(branches, func(a, b branch) int { return cmp.Compare(a.first, b.first) })
	spans := make([]span, 0, 2*len(branches)+1)
	put := func(first uint32, to *node) {
		if n := len(spans); n > 0 && same(spans[n-1].to, to) {
			return
		}
		spans = append(spans, span{first, to})
	}
	next := uint64(0) // lowest value without a span
	for _, b := range branches {
		if uint64(b.first) > next {
			put(uint32(next), otherwise)
		}
		put(b.first, b.to)
		next = uint64(b.last) + 1
	}
	if next <= uint64(allBits) {
		put(uint32(next), otherwise)
	}
	if len(spans) == 1 {
		return spans[0].to
	}
	return &node{field: f, mask: mask, spans: spans}
}

// equal64 leads to yes when the whole argument is one of values, all of which
// fit in 32 bits.
func equal64(arg int, yes, no *node, values ...uint32) *node {
	branches := make([]branch, len(values))
	for i, v := range values {
		branches[i] = on(v, yes)
	}
	return choose(high(arg), allBits, no, on(0, choose(low(arg), allBits, no, branches...)))
}
