package seccomp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
)

// reference says what a diagram means, the slow way.
func reference(n *node, word func(field) uint32) Action {
	for !n.leaf() {
		v := word(n.field) & n.mask
		next := n.spans[0].to
		for _, s := range n.spans {
			if s.first <= v {
				next = s.to
			}
		}
		n = next
	}
	return n.action
}

// generator makes random diagrams and remembers the values at their borders.
type generator struct {
	*rand.Rand
	values []uint32
	made   []*node
}

var fields = []field{fieldNumber, fieldArch, low(0), high(0), low(1), high(1), low(2), low(5), high(5)}

func (g *generator) leaf() *node {
	actions := []Action{Allow, KillProcess, Done, RefuseEPERM, RefuseENOSYS, RefuseEINVAL, errnoBase | 4095}
	return answer(actions[g.IntN(len(actions))])
}

func (g *generator) target(depth int) *node {
	switch {
	case len(g.made) > 0 && g.IntN(6) == 0:
		return g.made[g.IntN(len(g.made))] // shared by several ways in
	case depth > 0 && g.IntN(4) == 0:
		return g.diagram(depth - 1)
	}
	return g.leaf()
}

// diagram builds through choose, with up to 400 branches in the uppermost node:
// far more than conditional jumps reach over.
func (g *generator) diagram(depth int) *node {
	masks := []uint32{allBits, allBits, allBits, 0xf000, 0xff, 0x7e020000, 1, ^uint32(0x11)}
	count := g.IntN(12)
	if depth >= 2 {
		count = g.IntN(400)
	}
	var branches []branch
	next := uint64(g.IntN(3))
	for range count {
		first := next
		switch g.IntN(8) {
		case 0:
			first += uint64(g.IntN(1000))
		case 1:
			first += uint64(g.Uint32() >> g.IntN(32))
		}
		last := first
		if g.IntN(3) == 0 {
			last += uint64(g.IntN(50))
		}
		if last > uint64(allBits) {
			break
		}
		branches = append(branches, branch{uint32(first), uint32(last), g.target(depth)})
		g.values = append(g.values, uint32(first), uint32(last))
		next = last + 1 + uint64(g.IntN(2))
	}
	if g.IntN(8) == 0 && next <= uint64(allBits) {
		branches = append(branches, branch{uint32(next), allBits, g.target(depth)})
	}
	g.Shuffle(len(branches), func(i, j int) { branches[i], branches[j] = branches[j], branches[i] })
	n := choose(fields[g.IntN(len(fields))], masks[g.IntN(len(masks))], g.target(depth), branches...)
	g.made = append(g.made, n)
	return n
}

func (g *generator) value() uint32 {
	if len(g.values) == 0 || g.IntN(4) == 0 {
		return g.Uint32() >> g.IntN(32)
	}
	return g.values[g.IntN(len(g.values))] + uint32(g.IntN(3)) - 1
}

// checkDiagram compiles what a seed makes and compares three readings of it.
func checkDiagram(t *testing.T, seed1, seed2 uint64) (length int) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed1, seed2))}
	root := g.diagram(2)
	f, err := newFilter(root)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		nr, arch := g.value(), g.value()
		var args [6]uint64
		for i := range args {
			args[i] = uint64(g.value())<<32 | uint64(g.value())
		}
		want := reference(root, func(f field) uint32 {
			switch {
			case f == fieldNumber:
				return nr
			case f == fieldArch:
				return arch
			case (f-16)%8 == 0:
				return uint32(args[(f-16)/8])
			}
			return uint32(args[(f-16)/8] >> 32)
		})
		got, err := f.Evaluate(arch, nr, args)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := rawRun(f.Bytes(), arch, nr, args)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || raw.action != want {
			t.Fatalf("seed %d %d: nr %#x arch %#x args %#x: diagram says %v, simulator %v, bytes %v",
				seed1, seed2, nr, arch, args, want, got, raw.action)
		}
	}
	return f.Len()
}

func TestCompiledDiagramsMeanWhatTheySay(t *testing.T) {
	long := 0
	for seed := range uint64(150) {
		if checkDiagram(t, seed, 1) > 2*maxSkip {
			long++
		}
	}
	if long == 0 {
		t.Error("no diagram was long enough to need bridged jumps")
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, a, b uint64) { checkDiagram(t, a, b) })
}

// Every jump of this diagram crosses all the leaves between.
func TestLongJumps(t *testing.T) {
	for _, count := range []int{2, 3, 100, 127, 128, 129, 254, 255, 256, 257, 600} {
		var branches []branch
		for i := range count {
			inner := choose(low(0), allBits, answer(errnoBase|Action(i+1)), on(uint32(i), answer(Allow)))
			branches = append(branches, on(uint32(i), inner))
		}
		f, err := newFilter(choose(fieldNumber, allBits, answer(KillProcess), branches...))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(nr uint32, arg uint64) Action {
			r, err := rawRun(f.Bytes(), 0, nr, [6]uint64{arg})
			if err != nil {
				t.Fatal(err)
			}
			return r.action
		}
		for i := range uint32(count) {
			if a := ask(i, uint64(i)); a != Allow {
				t.Fatalf("%d branches: number %d with its argument: %v", count, i, a)
			}
			if a, want := ask(i, uint64(i)+1), errnoBase|Action(i+1); a != want {
				t.Fatalf("%d branches: number %d: %v, want %v", count, i, a, want)
			}
		}
		if a := ask(uint32(count), 0); a != KillProcess {
			t.Fatalf("%d branches: the number after the last: %v", count, a)
		}
	}
}

// Bridging one way of a jump moves the other a step further away.
func TestJumpWithBothWaysAtTheEdgeOfReach(t *testing.T) {
	for fill := maxSkip - 3; fill <= maxSkip+3; fill++ {
		for _, taken := range []bool{true, false} {
			e := emitter{nodes: map[*node]int{}, leaves: map[Action]int{}}
			first := e.add(bpf.RetConstant{Val: uint32(RefuseEPERM)})
			second := e.add(bpf.RetConstant{Val: uint32(Allow)})
			for range fill {
				e.add(bpf.RetConstant{Val: uint32(KillProcess)})
			}
			want := [2]Action{Allow, RefuseEPERM}
			if taken {
				e.jump(bpf.JumpEqual, 0, second, first)
			} else {
				want[0], want[1] = want[1], want[0]
				e.jump(bpf.JumpEqual, 0, first, second)
			}
			e.add(bpf.LoadAbsolute{Off: 0, Size: 4})
			slices.Reverse(e.code)
			vm, err := bpf.NewVM(e.code)
			if err != nil {
				t.Fatal(err)
			}
			for nr, w := range want {
				got, err := vm.Run([]byte{0, 0, 0, byte(nr)})
				if err != nil || Action(uint32(got)) != w {
					t.Errorf("%d instructions between, yes is the nearer: %v, word %d: %v, %v; want %v", fill, taken, nr, Action(uint32(got)), err, w)
				}
			}
		}
	}
}

func TestTooLongForTheKernel(t *testing.T) {
	var branches []branch
	for i := range uint32(maxInstructions) {
		branches = append(branches, on(i, answer(errnoBase|Action(i%4000))))
	}
	if f, err := newFilter(choose(fieldNumber, allBits, answer(Allow), branches...)); err == nil {
		t.Errorf("a filter of %d instructions was made; the kernel takes %d", f.Len(), maxInstructions)
	}
}

func TestChooseWithOneOutcomeIsThatOutcome(t *testing.T) {
	n := choose(low(0), allBits, answer(Allow), on(5, answer(Allow)), branch{7, allBits, answer(Allow)})
	if !n.leaf() || n.action != Allow {
		t.Errorf("got %+v", n)
	}
	f, err := newFilter(n)
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 1 {
		t.Errorf("%d instructions for one answer", f.Len())
	}
}
