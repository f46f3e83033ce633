package policy_test

import (
	"net/http"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func costing(c policy.Cost) func(*policy.Policy) {
	return func(p *policy.Policy) { p.Limits[0].Cost = &c }
}

func TestCost(t *testing.T) {
	byHeader := costing(policy.Cost{Default: 3, Max: 50, RequestHeader: "x-cost"})
	for name, tc := range map[string]struct {
		policy  func(*policy.Policy)
		request string
		want    int64
	}{
		"a request costs one":                     {func(*policy.Policy) {}, "GET / X-Cost:7", 1},
		"a fixed cost":                            {costing(policy.Cost{Default: 5, Max: 5}), "GET / X-Cost:7", 5},
		"what the header says":                    {byHeader, "GET / X-Cost:7", 7},
		"what the header says, with zeros":        {byHeader, "GET / X-Cost:007", 7},
		"the most":                                {byHeader, "GET / X-Cost:50", 50},
		"no more than the most":                   {byHeader, "GET / X-Cost:51", 50},
		"no more than the most, whatever is said": {byHeader, "GET / X-Cost:99999999999999999999999999", 50},
		"the default, without the header":         {byHeader, "GET /", 3},
		"the default, for nothing":                {byHeader, "GET / X-Cost:", 3},
		"the default, for zero":                   {byHeader, "GET / X-Cost:0", 3},
		"the default, for less than nothing":      {byHeader, "GET / X-Cost:-7", 3},
		"the default, for a fraction":             {byHeader, "GET / X-Cost:7.5", 3},
		"the default, for a word":                 {byHeader, "GET / X-Cost:seven", 3},
		"the first of several":                    {byHeader, "GET / X-Cost:7 X-Cost:8", 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limitOf(t, tc.policy).Cost(view(request(tc.request))); got != tc.want {
				t.Errorf("it costs %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	byResponse := costing(policy.Cost{Default: 10, Max: 50, ResponseHeader: "x-used"})
	for name, tc := range map[string]struct {
		policy  func(*policy.Policy)
		header  string // value of X-Used; "-" for none
		settles bool
		want    int64 // of 10 charged
	}{
		"without a response's word":        {func(*policy.Policy) {}, "7", false, 10},
		"less than was charged":            {byResponse, "7", true, 7},
		"more than was charged":            {byResponse, "20", true, 20},
		"nothing at all":                   {byResponse, "0", true, 0},
		"no more than the most":            {byResponse, "51", true, 50},
		"what was charged, without a word": {byResponse, "-", true, 10},
		"what was charged, for no number":  {byResponse, "7 tokens", true, 10},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitOf(t, tc.policy)
			response := http.Header{}
			if tc.header != "-" {
				response.Set("X-Used", tc.header)
			}
			if got := l.Settle(response, 10); got != tc.want || l.Settles() != tc.settles {
				t.Errorf("it is settled with %d (%v), want %d (%v)", got, l.Settles(), tc.want, tc.settles)
			}
		})
	}
}

func TestReadingACostDoesNotAllocate(t *testing.T) {
	l := limitOf(t, costing(policy.Cost{Default: 1, Max: 50, RequestHeader: "x-my-own-cost", ResponseHeader: "x-my-own-use"}))
	r, response := view(request("GET / X-My-Own-Cost:7")), http.Header{"X-My-Own-Use": {"5"}}
	if n := testing.AllocsPerRun(100, func() { l.Settle(response, l.Cost(r)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSettledInFull(t *testing.T) {
	for name, tc := range map[string]struct {
		cost *policy.Cost
		want bool
	}{
		"one each":                              {nil, true},
		"what the request names":                {&policy.Cost{Default: 1, Max: 50, RequestHeader: "a"}, true},
		"a response may name more":              {&policy.Cost{Default: 1, Max: 50, ResponseHeader: "b"}, false},
		"a response may name less":              {&policy.Cost{Default: 50, Max: 50, ResponseHeader: "b"}, true},
		"a request may name less than response": {&policy.Cost{Default: 50, Max: 50, RequestHeader: "a", ResponseHeader: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&policy.Limit{Cost: tc.cost}).Settled(); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
