package limiter_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestValidateParameters(t *testing.T) {
	hour := 3600 * limiter.Second
	for name, c := range map[string]struct {
		params limiter.Params
		want   string // part of the error, empty for none
	}{
		"one rate":               {params(1, rate(1, limiter.Second)), ""},
		"the smallest values":    {params(0, rate(1, limiter.MinWindow)), ""},
		"the largest values":     {params(limiter.MaxGeneration, rate(limiter.MaxLimit, limiter.MaxWindow)), ""},
		"four rates":             {params(1, rate(1, 100_000), rate(2, 200_000), rate(3, 300_000), rate(4, hour)), ""},
		"no rate":                {params(1), "1 to 4 rates, not 0"},
		"five rates":             {params(1, make([]limiter.Rate, 5)...), "1 to 4 rates, not 5"},
		"a limit of zero":        {params(1, rate(0, hour)), "rates[0].limit is 0"},
		"a negative limit":       {params(1, rate(-1, hour)), "rates[0].limit is -1"},
		"a limit too large":      {params(1, rate(limiter.MaxLimit+1, hour)), "rates[0].limit"},
		"a window too short":     {params(1, rate(1, limiter.MinWindow-1)), "rates[0].window is 99999µs"},
		"a window too long":      {params(1, rate(1, limiter.MaxWindow+1)), "rates[0].window"},
		"two windows of a kind":  {params(1, rate(1, hour), rate(1, limiter.Second), rate(2, hour)), "rates[2].window equals rates[0].window"},
		"the second rate is bad": {params(1, rate(1, hour), rate(0, limiter.Second)), "rates[1].limit"},
		"a negative generation":  {params(-1, rate(1, hour)), "generation is -1"},
		"a generation too large": {params(limiter.MaxGeneration+1, rate(1, hour)), "generation"},
	} {
		checkError(t, name, c.params.Validate(), c.want)
	}
}

func TestValidateRetention(t *testing.T) {
	for name, c := range map[string]struct {
		retention limiter.Retention
		want      string
	}{
		"volatile":                       {limiter.Retention{}, ""},
		"durable":                        {limiter.Retention{Durable: true, Resume: true}, ""},
		"as many births as there may be": {limiter.Retention{Born: make([]limiter.MemoryID, limiter.MaxBorn)}, ""},
		"too many births":                {limiter.Retention{Born: make([]limiter.MemoryID, limiter.MaxBorn+1)}, "retention.born has 65"},
		"volatile and resumed":           {limiter.Retention{Resume: true}, "retention.resume"},
	} {
		p := params(1, rate(1, limiter.Second))
		p.Retention = c.retention
		checkError(t, name, p.Validate(), c.want)
	}
}

func TestValidateReportsEveryRate(t *testing.T) {
	err := params(1, rate(0, limiter.Second), rate(1, 0)).Validate()
	checkError(t, "two bad rates", err, "rates[0].limit")
	checkError(t, "two bad rates", err, "rates[1].window")
}

func TestValidateCommand(t *testing.T) {
	for name, c := range map[string]struct {
		command limiter.Command
		want    string
	}{
		"a strict check":             {take(3, 3), ""},
		"a lease":                    {take(1, 100), ""},
		"a return":                   {giveBack(1, window(1, short, 1, 1)), ""},
		"a negative floor":           {limiter.Command{Min: 1, Want: 1, Floor: -1}, "floor is -1"},
		"an unknown op":              {limiter.Command{Op: 4, Min: 1, Want: 1}, "op is 4"},
		"a take of nothing":          {take(0, 1), "min is 0"},
		"less wanted than the least": {take(3, 2), "min is 3"},
		"a negative want":            {take(1, -1), "want is -1"},
		"a return of nothing":        {giveBack(0), "want is 0"},
		"a negative return":          {giveBack(-4), "want is -4"},
		"a negative window count":    {limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: -1}}, "windows has -1"},
		"too many windows":           {limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: 5}}, "windows has 5"},
	} {
		checkError(t, name, c.command.Validate(), c.want)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	for reason := limiter.Granted; reason <= limiter.Forfeited; reason++ {
		if name := reason.String(); name == "" || strings.Contains(name, "(") {
			t.Errorf("reason %d has no name", reason)
		}
	}
	if got := limiter.Reason(99).String(); got != "Reason(99)" {
		t.Errorf("an unknown reason is called %q", got)
	}
}

func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error is %v, want one with %q", name, err, want)
	}
}
