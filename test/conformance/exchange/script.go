package exchange

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weir-dev/weir/internal/sidecar/proxy/framing/framingtest"
)

// play answers a request, and reports whether the connection may go on.
func (s *side) play() bool {
	a := &s.plan.answer
	rest := a.interim
	if len(rest) > 0 && rest[0].status == 100 {
		if !s.write(rest[0].encode(), nil, nil) {
			return false
		}
		rest = rest[1:]
	}
	if !s.due() || a.end == silent {
		return false
	}
	for i := range rest {
		if !s.write(rest[i].encode(), nil, nil) || a.looks && !s.await("an informational answer", s.received(s.i, len(a.interim)-len(rest)+i+1, -1)) {
			return false
		}
	}
	return s.answer()
}

// due waits until it is time to answer.
func (s *side) due() bool {
	switch s.plan.answer.start {
	case early, hastily:
		return s.await("the begin of a body", s.has(s.i, s.plan.answer.behind)) && s.request.State < Cut
	case atLeave:
		return s.await("the end of a client", func() bool { return s.gone })
	default:
		return s.complete()
	}
}

// complete waits for the end of the request.
func (s *side) complete() bool {
	return s.await("the end of a request", func() bool { return s.request.State > InBody }) && s.request.State == Complete
}

// answer sends the final answer.
func (s *side) answer() bool {
	a := &s.plan.answer
	head, parts, last := a.encode()
	if a.end == cutHead {
		s.write(head[:len(head)/2], nil, nil)
		return false
	}
	if a.end == cutBody {
		for a.parts[len(parts)-1] == "" { // without these the answer would be whole
			parts = parts[:len(parts)-1]
		}
		parts, last = parts[:len(parts)-1], ""
	}
	stream, offsets, got := head, []int{len(head)}, map[int]int{len(head): 0}
	for i, p := range parts {
		stream += p
		offsets = append(offsets, len(stream))
		got[len(stream)] = size(a.parts[:i+1])
	}
	stream += last
	offsets = append(offsets, a.writes...)
	slices.Sort(offsets)
	pause := len(head)
	if len(parts) > 0 {
		pause += len(parts[0])
	}
	if !s.write(stream, offsets, func(at int) bool { return s.reached(at, pause, got) }) {
		return false
	}
	return a.end == keeps && (a.start != early || s.request.State == Complete)
}

// reached does what the plan has at a point of the answer.
func (s *side) reached(at, pause int, got map[int]int) bool {
	a := &s.plan.answer
	n, looks := got[at]
	leaving := s.i == s.run.plan.last() && s.run.plan.end.answer >= 0 && s.run.plan.end.how >= leaves
	switch {
	case leaving:
		return n < s.run.plan.end.answer || !looks || s.await("the end of a client", func() bool { return s.left })
	case looks && (n > 0 || a.framing != byLength) && (a.looks || a.end == cutBody) && !s.await("a part of an answer", s.received(s.i, 0, n)):
		return false
	case at == pause && a.start == early:
		return s.complete()
	}
	return true
}

// write writes a part of the answer. A client that has left need not take it.
func (s *side) write(data string, offsets []int, reached func(int) bool) bool {
	if reached == nil {
		reached = func(int) bool { return true }
	}
	return split(s.conn, data, offsets, reached) == nil
}

// end ends the connection. One that the other side may use again goes on being read, to see
// whether it does so before it sees the end.
func (s *side) end() {
	if s.plan.answer.end == closesMutely {
		_ = s.conn.(*net.TCPConn).CloseWrite()
		return
	}
	_ = s.conn.Close()
}

func (i *interim) encode() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d Wait\r\n", i.status)
	writeFields(&b, i.fields)
	b.WriteString("\r\n")
	return b.String()
}

// encode returns the head of an answer, its body, and what ends that.
func (a *answer) encode() (head string, parts []string, last string) {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.status, a.phrase)
	fields := slices.Clip(a.fields)
	switch a.framing {
	case byLength:
		fields = append(fields, framingtest.Field{Name: "Content-Length", Value: fmt.Sprint(size(a.parts))})
	case byChunks:
		fields = append(fields, framingtest.Field{Name: "Transfer-Encoding", Value: "chunked"})
	case unframed, byClose:
	}
	if a.end == closes {
		fields = append(fields, framingtest.Field{Name: "Connection", Value: "close"})
	}
	writeFields(&b, fields)
	b.WriteString("\r\n")
	if a.bodyless {
		return b.String(), nil, ""
	}
	if a.framing != byChunks {
		return b.String(), a.parts, ""
	}
	for _, p := range a.parts {
		parts = append(parts, chunk(p, ""))
	}
	return b.String(), parts, body(byChunks, nil, "", a.trailer)
}
