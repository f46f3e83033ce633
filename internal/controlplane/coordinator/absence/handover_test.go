package absence

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestATermHandsOnThatItWasAbsentItself, of all that its successor does not know.
func TestATermHandsOnThatItWasAbsentItself(t *testing.T) {
	const began, stopped = limiter.Instant(50e6), limiter.Instant(90e6)
	earlier := []absence{{From: 1, Until: 10e6}, {From: 11e6, Until: 20e6}, {From: 21e6, Until: 30e6}, {From: 31e6, Until: 40e6}}
	for name, tc := range map[string]struct {
		first bool
		want  []absence
	}{
		"which is not the first": {false, append([]absence{{From: 1, Until: 20e6}}, append(slices.Clone(earlier[2:]), absence{From: began, Until: stopped})...)},
		"which is the first":     {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := New(func() limiter.Instant { return began }, tc.first, &Inheritance{Others: earlier}).Export(stopped)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Others); diff != "" {
				t.Errorf("handed on (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsHandedOverOfReturnsIsNeverEarlier, and little.
func TestWhatIsHandedOverOfReturnsIsNeverEarlier(t *testing.T) {
	all := limiter.Shares{Of: 1000}
	for i := range 777 {
		all.At = append(all.At, limiter.Instant(i*i))
	}
	known := []limiter.Absence{{
		From: 1, Until: limiter.MaxInstant, Whole: 9, Back: []limiter.Shares{all}, Lapse: []limiter.Shares{all}, Again: []limiter.Shares{all},
	}}
	short := handedOn(known, 1e6, limiter.Second)
	if len(short) != 1 || len(short[0].Back) != 1 || len(short[0].Back[0].At) > maxSteps || short[0].Until != 1e6 {
		t.Fatalf("handed on %+v", short)
	}
	data, err := json.Marshal(Inheritance{Policies: map[string][]absence{"shop/checkout": short}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	got := read.of(types.NamespacedName{Namespace: "shop", Name: "checkout"})[0]
	if got.Whole != 9 || len(got.Back[0].At) != len(all.At) || len(got.Lapse[0].At) != len(all.At) || len(got.Again[0].At) != len(all.At) {
		t.Fatalf("read %+v", got)
	}
	for i, at := range all.At {
		if back, over, again := got.Back[0].At[i], got.Lapse[0].At[i], got.Again[0].At[i]; back < at || over > at || again < at {
			t.Fatalf("holder %d is back at %d, promises until %d and again at %d, which was at %d", i, back, over, again, at)
		}
	}
	if got := handedOn(known, limiter.Instant(limiter.Day), limiter.Second); len(got) != 1 {
		t.Errorf("an absence that lasts is left out: %v", got)
	}
	known[0].Until = 5
	if got := handedOn(known, limiter.Instant(limiter.Day), limiter.Second); len(got) != 0 {
		t.Errorf("an absence without an open window is handed on: %v", got)
	}
	for _, damaged := range []string{"{", `{"others":[{"back":[{"of":0}]}]}`, `{"others":[{"back":[{"of":1,"at":[2,1],"count":[1,1]}]}]}`, `{"others":[{"back":[{"of":1,"at":[2],"count":[]}]}]}`} {
		if _, err := Decode([]byte(damaged)); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}
