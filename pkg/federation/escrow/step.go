package escrow

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Step applies c, which is valid by Validate, to s at the instant now of the escrow's
// clock. It panics on an Op it does not know.
func (s State) Step(now limiter.Instant, c Command) (State, Result) {
	s.read(now)
	var r Result
	switch c.Op {
	case Take:
		r.Granted = s.take(c.Min, c.Want)
	case Return:
		r.Granted = s.putBack(c.Epoch.Index, c.Want)
	case Ask:
		s.prepare(c.Holder, &r)
	case Release:
		s.release(c.Keep)
		s.prepare(c.Holder, &r)
		s.Floor = s.Seq - 1
	case Fill:
		s.fill(&c)
	case Open:
		s.openSlice(&c)
	case Peek:
	default:
		panic(fmt.Sprintf("escrow: no operation has the value %d", c.Op))
	}
	s.complete(&r)
	return s, r
}

// complete fills in an answer.
func (s *State) complete(r *Result) {
	r.Now = s.Latest
	if !s.open() {
		return
	}
	r.Epoch, r.ExpiresIn = s.Epoch, s.Ends.Sub(s.Latest)
	r.Remaining, r.Taken, r.Asked = s.remaining(), s.Taken, s.Asked
}
