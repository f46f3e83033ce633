package exchange

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// A source is what a plan is drawn from.
type source struct{ *rand.Rand }

// one draws with a probability of one in n.
func (s source) one(n int) bool { return s.IntN(n) == 0 }

func pick[T any](s source, all ...T) T { return all[s.IntN(len(all))] }

// Draw returns the plan of a seed.
func Draw(seed uint64) *Plan {
	s := source{rand.New(rand.NewPCG(seed, 0x5eed))}
	p := &Plan{Seed: seed, end: ending{answer: -1}}
	n := pick(s, 1, 1, 2, 3)
	for i := range n {
		p.requests = append(p.requests, s.request(i == n-1))
	}
	for i := 1; i < n; i++ {
		before := &p.requests[i-1]
		p.requests[i].pipelined = s.one(2) && !before.expects
	}
	if s.one(3) {
		s.ending(p)
	}
	return p
}

func (s source) request(last bool) request {
	q := request{
		method:  pick(s, "GET", "GET", "HEAD", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "TRACE"),
		version: "HTTP/1.1",
		target:  pick(s, "", "", "http://other.example:81", "HTTP://h") + pick(s, "", "", "/a", "/a%2fb", "/..;") + place + pick(s, "", "", "?", "?a=b&c", "?x=%zz|\"", "?b[]=1;2"),
	}
	if last && s.one(12) {
		q.version = "HTTP/1.0"
	}
	q.fields = s.requestFields(&q)
	if last && s.one(8) {
		q.fields = append(q.fields, line(pick(s, "Connection", "connection"), pick(s, "close", "Close")))
	}
	if sends := slices.Contains([]string{"POST", "PUT", "PATCH"}, q.method); q.method != "TRACE" && (sends && !s.one(6) || !sends && s.one(6)) {
		s.body(&q)
	}
	s.Shuffle(len(q.fields), func(i, j int) { q.fields[i], q.fields[j] = q.fields[j], q.fields[i] })
	q.answer = s.answer(&q, last)
	wire, head := q.wire(strings.Repeat("t", tokenBytes), 0)
	q.writes = s.offsets(len(wire))
	if s.one(3) && len(wire) > head && !q.expects {
		q.looks = append(q.looks, head+s.IntN(len(wire)-head+1))
	}
	return q
}

// body draws the body of a request, and its part in the head.
func (s source) body(q *request) {
	q.parts = s.parts()
	if q.version == "HTTP/1.1" && s.one(2) {
		q.framing = byChunks
		q.fields = append(q.fields, line("Transfer-Encoding", pick(s, "chunked", "chunked", "Chunked")))
		q.parts = slices.DeleteFunc(q.parts, func(p string) bool { return p == "" })
		q.extension = pick(s, "", "", "", ";a", ";a=b;c=\"d e\"")
		q.trailer = s.trailer()
		if len(q.trailer) > 0 && s.one(2) {
			q.fields = append(q.fields, line("Trailer", q.trailer[0].Name))
		}
	} else {
		q.framing = byLength
		q.fields = append(q.fields, line(pick(s, "Content-Length", "content-length"), fmt.Sprint(size(q.parts))))
	}
	if q.version == "HTTP/1.1" && size(q.parts) > 0 && s.one(5) {
		q.expects = true
		q.fields = append(q.fields, line("Expect", "100-continue"))
	}
}

// parts draws a body. Most are small, and some are larger than buffers.
func (s source) parts() []string {
	var all []string
	for range s.IntN(4) {
		all = append(all, s.text(pick(s, 0, 1, 2, 10, 100, 1000, 5000, 40_000)))
	}
	if s.one(50) {
		all = append(all, s.text(300_000))
	}
	return all
}

func (s source) text(most int) string {
	b := make([]byte, s.IntN(most+1))
	for i := range b {
		b[i] = "0123456789abcdef\r\n\x00\xff :"[s.IntN(21)]
	}
	return string(b)
}

// offsets draws where data is split into writes.
func (s source) offsets(length int) (all []int) {
	if length == 0 || s.one(2) {
		return nil
	}
	for range 1 + s.IntN(6) {
		all = append(all, s.IntN(length))
	}
	if s.one(10) {
		from := s.IntN(length)
		for i := range min(40, length-from) {
			all = append(all, from+i)
		}
	}
	slices.Sort(all)
	return all
}

func (s source) answer(q *request, last bool) answer {
	a := answer{status: pick(s, 200, 200, 200, 201, 204, 206, 301, 304, 400, 404, 413, 429, 500, 502, 503, 299, 599)}
	a.phrase = pick(s, http.StatusText(a.status), "", "Own Words")
	for range pick(s, 0, 0, 0, 1, 2) {
		a.interim = append(a.interim, interim{status: pick(s, 102, 103, 103), fields: s.answerFields()})
	}
	a.fields = s.answerFields()
	a.parts = s.parts()
	a.framing = pick(s, byLength, byChunks)
	if q.version == "HTTP/1.0" {
		a.framing, a.interim = byLength, nil
	}
	a.bodyless = bodyless(q.method, a.status)
	if last {
		a.end = pick(s, keeps, keeps, keeps, keeps, closes, closesMutely, silent, cutHead, cutBody)
		if (a.end == closes || a.end == closesMutely) && s.one(2) {
			a.framing = byClose
		}
	}
	switch {
	case a.status == http.StatusNoContent:
		a.framing, a.parts = unframed, nil
	case a.framing == byChunks:
		a.parts = slices.DeleteFunc(a.parts, func(p string) bool { return p == "" })
		a.trailer = s.trailer()
	}
	if a.end == cutBody && (a.bodyless || size(a.parts) == 0) {
		a.end = silent
	}
	a.looks = s.one(2)
	s.start(q, &a)
	head, parts, end := a.encode()
	a.writes = s.offsets(len(head) + size(parts) + len(end))
	return a
}

// start draws when an answer begins.
func (s source) start(q *request, a *answer) {
	if q.expects {
		if s.one(3) {
			a.start, a.interim = hastily, nil // it refuses the body
			a.end = closes
			return
		}
		a.interim = append([]interim{{status: 100}}, a.interim...)
	}
	if all := size(q.parts); all > 0 && !q.expects {
		switch s.IntN(6) {
		case 0:
			a.start, a.behind = early, s.IntN(all+1)
		case 1:
			a.start = hastily
		}
	}
}

// ending draws how and where the client ends the connection.
func (s source) ending(p *Plan) {
	i := p.last()
	q := &p.requests[i]
	wire, head := q.wire(strings.Repeat("t", tokenBytes), i)
	p.end.how = pick(s, closesSide, leaves, aborts)
	p.end.at = len(wire)
	if q.expects || q.answer.start == hastily {
		p.end.how = stays
		return
	}
	if p.end.how >= leaves {
		q.pipelined = false // what came before is to be answered
	}
	switch at := s.IntN(4); {
	case at == 0: // in the head
		p.end.at, q.pipelined = s.IntN(head), false
	case at == 1 && len(wire) > head: // in the body
		p.end.at = head + s.IntN(len(wire)-head)
		if q.answer.start == early {
			q.answer.behind = min(q.answer.behind, q.bodyAt(p.end.at-head))
		}
	case p.end.how == closesSide:
	case at == 2 && q.answer.end == keeps && !q.answer.bodyless && len(q.answer.parts) > 0 && q.answer.parts[0] != "": // in the answer
		p.end.answer = len(q.answer.parts[0])
		q.answer.looks = false
	default:
		q.answer.start, q.answer.looks = atLeave, false
	}
}
