package replay

import (
	"testing"
	"time"
)

// came adds requests of clients at these seconds.
func came(t *testing.T, d *Demand, clients string, seconds ...int) Measure {
	t.Helper()
	for i, s := range seconds {
		e := &Entry{Time: start.Add(time.Duration(s) * time.Second)}
		if c := clients[i%len(clients)]; c != '-' {
			e.Client = string(c)
		}
		if err := d.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return d.Measure()
}

func TestDemand(t *testing.T) {
	client := func(e *Entry) string { return e.Client }
	for name, tc := range map[string]struct {
		key     func(*Entry) string
		clients string
		seconds []int
		want    Measure // without its lists
		beyond  int64   // of 1
	}{
		"overall, with windows in which nobody came": {nil, "a", []int{0, 1, 2, 40}, Measure{Windows: 5, P50: 0, P99: 3, Max: 3}, 2},
		"one window":                         {nil, "a", []int{3, 4}, Measure{Windows: 1, P50: 2, P99: 2, Max: 2}, 1},
		"of each client":                     {client, "aab", []int{0, 1, 2, 40, 41, 42}, Measure{Windows: 4, P50: 1, P99: 2, Max: 2}, 2},
		"one that is older than the before":  {nil, "a", []int{10, 9}, Measure{Windows: 1, P50: 2, P99: 2, Max: 2}, 1},
		"requests without the key":           {client, "a-", []int{0, 1, 2, 3}, Measure{Windows: 1, P50: 2, P99: 2, Max: 2, Missing: 2}, 1},
		"no request with the key at all":     {client, "-", []int{0, 1}, Measure{Missing: 2}, 0},
		"a window that ends at its boundary": {nil, "a", []int{9, 10}, Measure{Windows: 2, P50: 1, P99: 1, Max: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := came(t, NewDemand(10*time.Second, tc.key), tc.clients, tc.seconds...)
			if m.Windows != tc.want.Windows || m.P50 != tc.want.P50 || m.P99 != tc.want.P99 || m.Max != tc.want.Max || m.Missing != tc.want.Missing || m.Beyond(1) != tc.beyond {
				t.Errorf("it is %+v and %d beyond, want %+v and %d", m, m.Beyond(1), tc.want, tc.beyond)
			}
		})
	}
}
