package keys_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/keys"
)

func TestPurse(t *testing.T) {
	p := keys.Purse{}.Fill(keys.Answer{Index: 4, Ends: 100, Units: 5, Remaining: 60, Least: 2})
	if _, units := p.Take(100, 1, 1); units != 0 {
		t.Errorf("%d units are handed on when the window may be over", units)
	}
	if _, units := p.Take(0, 6, 9); units != 0 {
		t.Errorf("%d units are handed on, fewer than the least", units)
	}
	p, units := p.Take(99, 1, 3)
	if units != 3 {
		t.Fatalf("%d units are handed on, want 3", units)
	}
	if _, back := p.PutBack(50, 3, 1); back != 0 {
		t.Error("units of another window are taken back")
	}
	if _, back := p.PutBack(100, 4, 1); back != 0 {
		t.Error("units of a window that is over are taken back")
	}
	p, back := p.PutBack(99, 4, 9)
	if want := (keys.Purse{Index: 4, Ends: 100, Units: 5, Left: 60}); back != 3 || p != want {
		t.Errorf("%d units are taken back, and then there is %+v, want 3 and %+v", back, p, want)
	}
}

func TestAnswersEndUpInTheWindowThatGrantedThem(t *testing.T) {
	p := keys.Purse{Index: 4, Ends: 100, Units: 5, Taken: 7, Left: 9, Dry: 3}
	for _, c := range []struct {
		name   string
		answer keys.Answer
		want   keys.Purse
	}{
		{"of a window before", keys.Answer{Index: 3, Ends: 200, Units: 1}, p},
		{"of the window", keys.Answer{Index: 4, Ends: 90, Units: 2, Remaining: 6, Least: 1}, keys.Purse{Index: 4, Ends: 100, Units: 7, Taken: 7, Left: 6}},
		{"of the window, later", keys.Answer{Index: 4, Ends: 110, Remaining: 1, Least: 2}, keys.Purse{Index: 4, Ends: 110, Units: 5, Taken: 7, Left: 1, Dry: 2}},
		{"of a window after", keys.Answer{Index: 5, Ends: 200, Units: 2, Remaining: 50}, keys.Purse{Index: 5, Ends: 200, Units: 2, Left: 50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, p.Fill(c.answer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARegionAsksAheadForWhatItUses(t *testing.T) {
	for _, c := range []struct {
		name    string
		purse   keys.Purse
		members int
		want    int64
	}{
		{"nothing of a key that was not used", keys.Purse{Ends: 100, Left: 60}, 3, 0},
		{"as much as was used", keys.Purse{Ends: 100, Left: 60, Taken: 4}, 3, 4},
		{"a part of what is left", keys.Purse{Ends: 100, Left: 60, Taken: 40}, 3, 10},
		{"nothing once the window may be over", keys.Purse{Ends: 10, Left: 60, Taken: 40}, 3, 0},
	} {
		if got := c.purse.Ahead(10, c.members); got != c.want {
			t.Errorf("%s: %d units ahead, want %d", c.name, got, c.want)
		}
	}
}

func TestOnlyAKeyThatIsUsedAGoodDealRunsLow(t *testing.T) {
	for _, c := range []struct {
		purse keys.Purse
		want  bool
	}{
		{keys.Purse{Ends: 100, Left: 600, Taken: 7}, false},
		{keys.Purse{Ends: 100, Left: 600, Taken: 8}, true},
		{keys.Purse{Ends: 100, Left: 600, Taken: 8, Units: 4}, false},
		{keys.Purse{Ends: 100, Left: 5, Taken: 8}, false},
	} {
		if got := c.purse.Low(10, 3); got != c.want {
			t.Errorf("%+v is low: %v", c.purse, got)
		}
	}
}
