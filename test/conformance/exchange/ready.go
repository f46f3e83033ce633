package exchange

import "net/http"

// Ready returns an exchange that whatever serves passes.
func Ready() *Plan {
	return &Plan{
		end: ending{answer: -1},
		requests: []request{{
			method: http.MethodGet, target: place, version: "HTTP/1.1", fields: []field{line("Host", "a")},
			answer: answer{status: http.StatusNoContent, bodyless: true},
		}},
	}
}

// Answered reports whether the client has the app's answer to the last request.
func (p *Plan) Answered(s Seen) bool {
	last := at(s.Answers, p.last())
	return len(last) > 0 && last[len(last)-1].status() == p.requests[p.last()].answer.status
}
