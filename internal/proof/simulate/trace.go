package simulate

// A trace is a hash of everything that happened (FNV-1a over 64-bit words) and, when
// it is kept, the list itself.
type trace struct {
	digest uint64
	keep   bool
	steps  []step
}

// A step is one thing that happened.
type step struct {
	at     instant
	kind   byte
	node   int
	amount int64
}

// The kinds of steps.
const (
	stepAdmit  = 'a'
	stepRefuse = 'r'
	stepAsk    = 'q' // a message to the store
	stepReply  = 'p' // its answer, when it arrives
	stepFail   = 'f' // a call given up
	stepStore  = 's' // the store decides
	stepFault  = 'x'
)

func newTrace() trace { return trace{digest: 0xcbf29ce484222325} }

func (t *trace) add(at instant, kind byte, node int, amount int64) {
	const prime = 0x100000001b3
	for _, word := range [...]uint64{uint64(at), uint64(kind)<<32 | uint64(node), uint64(amount)} {
		t.digest = (t.digest ^ word) * prime
	}
	if t.keep {
		t.steps = append(t.steps, step{at, kind, node, amount})
	}
}
