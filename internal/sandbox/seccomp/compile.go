package seccomp

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
)

const (
	maxSkip         = 255  // a conditional jump has eight bits for each way
	maxInstructions = 4096 // BPF_MAXINSNS: the kernel takes no longer filter
	maxExceptions   = 2    // single values tested one after another before the tree splits
)

// assemble compiles the diagram that starts at root.
func assemble(root *node) ([]bpf.RawInstruction, error) {
	e := emitter{nodes: map[*node]int{}, leaves: map[Action]int{}}
	e.fallTo(e.node(root))
	if len(e.code) > maxInstructions {
		return nil, fmt.Errorf("assemble seccomp filter: %d instructions, the kernel takes %d", len(e.code), maxInstructions)
	}
	slices.Reverse(e.code)
	raw, err := bpf.Assemble(e.code)
	if err != nil {
		return nil, fmt.Errorf("assemble seccomp filter: %w", err)
	}
	return raw, nil
}

// emitter writes a program from its last instruction to its first. A place is
// an index into code, so a higher place runs earlier, and every place that can
// be jumped to is known when the jump is written.
type emitter struct {
	code   []bpf.Instruction
	nodes  map[*node]int  // where a decision starts
	leaves map[Action]int // the newest return of an action
}

func (e *emitter) add(i bpf.Instruction) int {
	e.code = append(e.code, i)
	return len(e.code) - 1
}

// distance is how many instructions the next one written must skip to reach
// place.
func (e *emitter) distance(place int) int { return len(e.code) - 1 - place }

// fallTo makes place what runs after the next instruction written.
func (e *emitter) fallTo(place int) {
	if d := e.distance(place); d > 0 {
		e.add(bpf.Jump{Skip: uint32(d)})
	}
}

// near returns a place with the same effect as place that a conditional jump
// reaches even after spare more instructions.
func (e *emitter) near(place, spare int) int {
	if e.distance(place)+spare <= maxSkip {
		return place
	}
	if ret, ok := e.code[place].(bpf.RetConstant); ok {
		p := e.add(ret) // a copy costs as much as a jump and saves a step
		e.leaves[Action(ret.Val)] = p
		return p
	}
	return e.add(bpf.Jump{Skip: uint32(e.distance(place))})
}

func (e *emitter) jump(cond bpf.JumpTest, val uint32, yes, no int) int {
	yes = e.near(yes, 1) // bringing no near may write one instruction
	no = e.near(no, 0)
	return e.add(bpf.JumpIf{
		Cond: cond, Val: val,
		SkipTrue: uint8(e.distance(yes)), SkipFalse: uint8(e.distance(no)),
	})
}

// node writes n, and what it leads to, unless it is there already.
func (e *emitter) node(n *node) int {
	if n.leaf() {
		if p, ok := e.leaves[n.action]; ok {
			return p
		}
		p := e.add(bpf.RetConstant{Val: uint32(n.action)})
		e.leaves[n.action] = p
		return p
	}
	if p, ok := e.nodes[n]; ok {
		return p
	}
	for _, s := range n.spans { // outside the tree, which stays compact
		if !s.to.leaf() {
			e.node(s.to)
		}
	}
	p := e.tree(stretches(n.spans))
	if n.mask != allBits {
		e.fallTo(p)
		p = e.add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: n.mask})
	}
	e.fallTo(p)
	p = e.add(bpf.LoadAbsolute{Off: uint32(n.field), Size: 4})
	e.nodes[n] = p
	return p
}

// stretch is a range of values that lead to one place, with a few single
// exceptions. An exception costs one comparison where two borders cost two.
type stretch struct {
	first  uint32
	to     *node
	except []branch
}

func stretches(spans []span) []stretch {
	var out []stretch
	for i := 0; i < len(spans); i++ {
		r := stretch{first: spans[i].first, to: spans[i].to}
		for i+2 < len(spans) && len(r.except) < maxExceptions &&
			spans[i+2].first == spans[i+1].first+1 && same(spans[i+2].to, r.to) {
			r.except = append(r.except, on(spans[i+1].first, spans[i+1].to))
			i += 2
		}
		out = append(out, r)
	}
	return out
}

// tree writes a binary search over stretches.
func (e *emitter) tree(rs []stretch) int {
	if len(rs) == 1 {
		p := e.node(rs[0].to)
		for _, x := range slices.Backward(rs[0].except) {
			p = e.jump(bpf.JumpEqual, x.first, e.node(x.to), p)
		}
		return p
	}
	mid := len(rs) / 2
	upper := e.tree(rs[mid:])
	lower := e.tree(rs[:mid])
	return e.jump(bpf.JumpGreaterOrEqual, rs[mid].first, upper, lower)
}
