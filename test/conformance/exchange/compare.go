package exchange

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Compare returns how what was seen through a proxy differs from what was seen with the app
// directly, but for the differences that docs/proxy.md names. app is the address of the app.
// Without a proxy there are none that anything names.
func (p *Plan) Compare(direct, through Seen, app string, proxied bool) []string {
	c := &comparison{plan: p, app: app, proxied: proxied, lost: make([]bool, len(p.requests)), reset: direct.End == "reset"}
	for i := range c.lost {
		c.lost[i] = proxied && through.Lost[i] > 0 && !p.requests[i].repeats() && unanswered(at(through.Answers, i))
	}
	for _, what := range direct.Late {
		c.differ("directly somebody waits in vain for %s", what)
	}
	for _, what := range through.Late {
		c.differ("somebody waits in vain for %s", what)
	}
	for i := range p.requests {
		c.request(i, direct.Requests[i], through.Requests[i])
	}
	for i := range p.requests {
		c.answers(i, at(direct.Answers, i), at(through.Answers, i))
	}
	c.end(direct, through)
	return c.differences
}

func at(all [][]*Message, i int) []*Message {
	if i < len(all) {
		return all[i]
	}
	return nil
}

type comparison struct {
	plan        *Plan
	app         string
	proxied     bool
	lost        []bool // requests that the proxy cannot send again
	reset       bool   // directly, the app has reset the connection
	differences []string
}

func (c *comparison) differ(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// equal notes a difference unless both are the same.
func (c *comparison) equal(what string, i int, want, got any) {
	if w, g := fmt.Sprintf("%q", want), fmt.Sprintf("%q", got); w != g {
		c.differ("%s %d is %.600s, want %.600s", what, i, g, w)
	}
}

// request compares what reached the app of a request.
func (c *comparison) request(i int, direct, through []*Message) {
	q := &c.plan.requests[i]
	broken := i == c.plan.last() && !c.plan.completes()
	switch {
	case len(direct) > 1:
		c.differ("directly request %d comes %d times", i, len(direct))
	case len(direct) == 0 && len(through) > 0:
		c.differ("request %d reaches the app, and is not sent", i)
	case len(direct) > 0 && len(through) == 0 && !c.lost[i] && !c.afterEnd(i) && c.plan.end.how < leaves:
		c.differ("request %d does not reach the app", i)
	case len(through) > 2, len(through) > 1 && !q.again():
		c.differ("request %d reaches the app %d times", i, len(through))
	}
	if len(direct) == 0 {
		return
	}
	want := direct[0]
	for _, got := range through {
		c.head(i, want, got)
		switch {
		case got.State == Broken:
			c.differ("request %d is malformed at the app", i)
		case broken || want.State != Complete || q.answer.start == hastily || c.mayBeCut(i):
			if got.State == Complete && (broken || !bytes.Equal(got.Body, q.whole())) {
				c.differ("request %d is complete at the app, and was not sent to its end", i)
			}
			if !bytes.HasPrefix(q.whole(), got.Body) {
				c.differ("the body of request %d is another one", i)
			}
		case got.State != Complete:
			c.differ("request %d is %v at the app, with %d of %d bytes", i, got.State, len(got.Body), len(want.Body))
		default:
			c.equal("the body of request", i, want.Body, got.Body)
			c.framing(i, want, got)
		}
	}
}

// mayBeCut reports whether the app may get a part of a request that the client sends to its end: the app
// ends the connection in the middle of it, which is answered at once, the client resets its own behind
// it, which may overtake the rest, or leaves in the middle of an answer that began before that had passed.
func (c *comparison) mayBeCut(i int) bool {
	a, end := &c.plan.requests[i].answer, c.plan.end
	ends := a.start == early && (a.end == silent || a.end == cutHead)
	gone := end.how == aborts || end.how == leaves && end.answer >= 0 && a.start == early
	return c.proxied && (ends || i == c.plan.last() && gone)
}

// head compares what reached the app of a request's head.
func (c *comparison) head(i int, want, got *Message) {
	start := strings.Replace(got.Start, "/"+tokenOf(got.Start), "/"+tokenOf(want.Start), 1)
	if !c.proxied {
		c.equal("the line of request", i, want.Start, start)
		c.equal("the header of request", i, want.Fields, got.Fields)
		return
	}
	c.equal("the line of request", i, origin(want.Start), start)
	c.equal("the header of request", i, forwarded(want, c.app), sorted(without(got.Fields, "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Upgrade")))
}

// framing compares how the app knows the end of a body.
func (c *comparison) framing(i int, want, got *Message) {
	c.equal("the coding of request", i, len(want.values("Transfer-Encoding")), len(got.values("Transfer-Encoding")))
	if !c.proxied {
		c.equal("the trailer of request", i, want.Trailer, got.Trailer)
		return
	}
	c.equal("the trailer of request", i, passed(want.Trailer), sorted(got.Trailer))
	length := want.length()
	if strings.Trim(length, "0") == "" {
		length = ""
	}
	has := got.length()
	if has == "0" {
		has = ""
	}
	c.equal("the length of request", i, length, has)
}

// tokenOf returns what names the exchange in a target.
func tokenOf(line string) string {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == '/' || r == ' ' }) {
		if len(word) == tokenBytes && strings.Trim(word, "0123456789") == "" {
			return word
		}
	}
	return ""
}

// whole is all of a request's body.
func (q *request) whole() []byte { return []byte(strings.Join(q.parts, "")) }

// again reports whether a request may be sent twice: the app ended the connection that it
// came over without an answer.
func (q *request) again() bool {
	return q.answer.end == silent && !q.expects && slices.Contains(idempotent, q.method)
}

// repeats reports whether a request is sent again that was lost to a connection that the app
// had ended: it does no harm twice, and has no body. A body may come too late for that.
func (q *request) repeats() bool {
	return slices.Contains(idempotent, q.method) && q.framing != byChunks && size(q.parts) == 0
}

var idempotent = []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}

// afterEnd reports whether the connection may have ended before a request: behind an answer
// that ended before its request's body, be it one of the proxy.
func (c *comparison) afterEnd(i int) bool {
	if !c.proxied {
		return false
	}
	for j := range c.plan.requests[:i] {
		if q := &c.plan.requests[j]; q.answer.start == hastily || c.lost[j] && q.framing != unframed {
			return true
		}
	}
	return false
}

// answers compares what the client received in answer to a request.
func (c *comparison) answers(i int, direct, through []*Message) {
	final := func(all []*Message) *Message {
		if len(all) == 0 || all[len(all)-1].status() < http.StatusOK {
			return nil
		}
		return all[len(all)-1]
	}
	if c.lost[i] {
		return
	}
	want, got := final(direct), final(through)
	last := i == c.plan.last()
	switch {
	case last && (c.plan.end.how >= leaves || !c.plan.completes()):
		if got != nil && want == nil && got.status() < http.StatusBadRequest && !c.mayCome(i, got) {
			c.differ("answer %d is %q, and the app gave none", i, got.Start)
		}
		if got == nil || want == nil {
			return
		}
	case want == nil && got == nil:
		return
	case want == nil:
		if !c.reset || got.status() != c.plan.requests[i].answer.status {
			c.instead(i, got)
		}
		return
	case got == nil && (c.afterEnd(i) || c.proxied && want.State == Cut && len(want.Body) == 0):
		return
	case got == nil:
		c.differ("answer %d does not come, want %q", i, want.Start)
		return
	}
	c.interim(i, direct[:len(direct)-1], through[:len(through)-1])
	c.equal("the status of answer", i, want.word(1), got.word(1))
	c.equal("the header of answer", i, relayed(want), relayed(c.undated(got, want)))
	if want.status() != http.StatusNotModified && want.length() != "" {
		c.equal("the length of answer", i, want.length(), got.length())
	}
	if last && (c.plan.end.how >= leaves || !c.plan.completes()) {
		return
	}
	if c.reset && want.State == Cut && got.State == Complete && string(got.Body) == strings.Join(c.plan.requests[i].answer.parts, "") {
		return // directly, the reset has overtaken the rest
	}
	c.equal("the state of answer", i, want.State, got.State)
	c.equal("the body of answer", i, want.Body, got.Body)
	if c.plan.requests[i].version == "HTTP/1.1" {
		c.equal("the trailer of answer", i, sorted(want.Trailer), sorted(got.Trailer))
	}
}

// mayCome reports whether an answer is one that the app gives before it has the request. A client
// that leaves may have it or not.
func (c *comparison) mayCome(i int, got *Message) bool {
	a := &c.plan.requests[i].answer
	return (a.start == early || a.start == hastily) && got.status() == a.status
}

// instead judges what a client is answered when the app has said nothing.
func (c *comparison) instead(i int, got *Message) {
	want := "502"
	if !c.proxied {
		want = "no answer"
	}
	if i == c.plan.last() && !c.plan.completes() {
		want = "400"
	}
	if got.word(1) != want {
		c.differ("answer %d is %q, and the app gave none: want %s", i, got.Start, want)
	}
}

// interim compares informational answers.
func (c *comparison) interim(i int, direct, through []*Message) {
	c.equal("the number of informational answers", i, len(direct), len(through))
	for j := range min(len(direct), len(through)) {
		c.equal("the status of an informational answer", i, direct[j].word(1), through[j].word(1))
		c.equal("the header of an informational answer", i, relayed(direct[j]), relayed(through[j]))
	}
}

// undated returns an answer without the date that it was given on its way.
func (c *comparison) undated(got, want *Message) *Message {
	if len(want.values("Date")) > 0 || !c.proxied {
		return got
	}
	return &Message{Start: got.Start, Fields: without(got.Fields, "Date")}
}

// end compares how the client's connection ended.
func (c *comparison) end(direct, through Seen) {
	if c.plan.end.how >= leaves || direct.End == through.End {
		return
	}
	if direct.End == "left" && c.plan.requests[c.plan.last()].answer.end == keeps && !c.afterEnd(len(c.plan.requests)) { // the app would have gone on
		c.differ("the connection is %s, and the app kept it", through.End)
	}
}
