package policy

import "net/http"

// costHeaders are the canonical names of the headers that name a cost; empty where
// there is none.
type costHeaders struct{ request, response string }

func compileCost(c *Cost) costHeaders {
	if c == nil {
		return costHeaders{}
	}
	return costHeaders{request: http.CanonicalHeaderKey(c.RequestHeader), response: http.CanonicalHeaderKey(c.ResponseHeader)}
}

// Cost returns what r costs: what it is charged before it is let through. It is at
// least 1. A descriptor has no header that could say it.
func (l *CompiledLimit) Cost(r *Request) int64 {
	c := l.Limit.Cost
	if c == nil {
		return 1
	}
	if r.http == nil {
		return c.Default
	}
	if amount, ok := amountOf(r.http.Header, l.costs.request, c.Max); ok && amount > 0 {
		return amount
	}
	return c.Default
}

// Settles reports whether responses say what their requests cost.
func (l *CompiledLimit) Settles() bool { return l.costs.response != "" }

// Settle returns what a request cost that was charged that much, now that the header
// of its response is known. It is from 0, which gives everything back, to
// Cost.Max; and charged when the response does not say.
func (l *CompiledLimit) Settle(response http.Header, charged int64) int64 {
	if !l.Settles() {
		return charged
	}
	if amount, ok := amountOf(response, l.costs.response, l.Limit.Cost.Max); ok {
		return amount
	}
	return charged
}

// amountOf returns the whole number that the first value of a header is, most
// when it is larger. It reports false when there is none.
func amountOf(h http.Header, name string, most int64) (int64, bool) {
	values := h[name]
	if len(values) == 0 || values[0] == "" {
		return 0, false
	}
	var amount int64
	for _, digit := range []byte(values[0]) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		amount = min(amount*10+int64(digit-'0'), most) // ten times MaxLimit is a number
	}
	return amount, true
}
