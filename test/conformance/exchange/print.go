package exchange

import (
	"fmt"
	"strings"
)

// String shows a plan as what is sent, for a person to read.
func (p *Plan) String() string {
	var b strings.Builder
	for i := range p.requests {
		q := &p.requests[i]
		wire, head := q.wire(strings.Repeat("t", tokenBytes), i)
		fmt.Fprintf(&b, "request %d: %.700q and %d more bytes, expects %v, pipelined %v, writes %v, looks %v\n", i, wire[:head], len(wire)-head, q.expects, q.pipelined, q.writes, q.looks)
		a := &q.answer
		answerHead, _, last := a.encode()
		fmt.Fprintf(&b, "answer %d: begins at %d (%d), interim %v, %.700q, parts", i, a.start, a.behind, a.interim, answerHead)
		for _, part := range a.parts {
			fmt.Fprintf(&b, " %d", len(part))
		}
		fmt.Fprintf(&b, ", %q, writes %v, looks %v, ends %d\n", last, a.writes, a.looks, a.end)
	}
	fmt.Fprintf(&b, "the client ends it: %+v", p.end)
	return b.String()
}

// String shows what was seen.
func (s Seen) String() string {
	var b strings.Builder
	show := func(what string, all [][]*Message) {
		for i, messages := range all {
			for _, m := range messages {
				fmt.Fprintf(&b, "\n  %s %d: %.300q %.900q, %d bytes, trailer %q, %v", what, i, m.Start, m.Fields, len(m.Body), m.Trailer, m.State)
			}
		}
	}
	show("request", s.Requests)
	show("answer", s.Answers)
	fmt.Fprintf(&b, "\n  lost: %v, ended: %s, late: %q", s.Lost, s.End, s.Late)
	return b.String()
}
