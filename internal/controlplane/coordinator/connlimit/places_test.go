package connlimit

import (
	"container/list"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestPlaces(t *testing.T) {
	oldest, newest := (*list.List).Front, (*list.List).Back
	for name, tc := range map[string]struct {
		Most, each int
		gives      func(*list.List) *list.Element
		in         string // a letter for each member: its group
		want       string // who has places then, by group and number; - for one that got none
	}{
		"one group may have all":           {4, 4, newest, "aaaa", "a0 a1 a2 a3"},
		"but no more":                      {4, 4, newest, "aaaaa", "a0 a1 a2 a3 -4"},
		"or its part":                      {4, 2, newest, "aaab", "a0 a1 -2 b3"},
		"the largest gives up its newest":  {4, 4, newest, "aaaab", "a0 a1 a2 b4"},
		"or its oldest":                    {4, 4, oldest, "aaaab", "a1 a2 a3 b4"},
		"until the groups have the same":   {4, 4, newest, "aaaabbb", "a0 a1 b4 b5 -6"},
		"and nothing is passed to and fro": {4, 4, newest, "aaaabbab", "a0 a1 b4 b5 -6 -7"},
		"one group too many has none":      {2, 2, newest, "abc", "a0 b1 -2"},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlaces[byte, int](tc.Most, tc.each, tc.gives)
			has := map[int]string{}
			for i := range tc.in {
				got, givenUp := p.Take(tc.in[i], i, 1)
				for _, other := range givenUp {
					delete(has, other.Member)
				}
				has[i] = "-" + fmt.Sprint(i)
				if got != nil {
					has[i] = string(tc.in[i]) + fmt.Sprint(i)
				}
				if p.Taken > tc.Most {
					t.Fatalf("%d places of %d are taken", p.Taken, tc.Most)
				}
			}
			var out []string
			for i := range tc.in {
				if has[i] != "" {
					out = append(out, has[i])
				}
			}
			if got := strings.Join(out, " "); got != tc.want {
				t.Errorf("places: %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAPlaceIsFreedOnce(t *testing.T) {
	p := NewPlaces[string, int](2, 2, (*list.List).Back)
	first, _ := p.Take("a", 1, 1)
	_, _ = p.Take("a", 2, 1)
	for range 2 {
		p.Free(first)
	}
	p.Free(nil)
	if p.Taken != 1 || p.Of("a") != 1 {
		t.Errorf("%d places are taken, %d by the group; want 1", p.Taken, p.Of("a"))
	}
	if got, givenUp := p.Take("b", 3, 1); got == nil || givenUp != nil || p.Taken != 2 {
		t.Errorf("%d places are taken, want 2", p.Taken)
	}
}

// TestPlacesByWeight: a group has what it takes by weight, and gives up whole members.
func TestPlacesByWeight(t *testing.T) {
	p := NewPlaces[string, string](10, 10, (*list.List).Back)
	in := map[string]*Place[string, string]{}
	remove := func(givenUp []*Place[string, string]) (names string) {
		for _, place := range givenUp {
			delete(in, place.Member)
			names += place.Member
		}
		return names
	}
	take := func(member string, weight int) string {
		got, givenUp := p.Take(member[:1], member, weight)
		names := remove(givenUp)
		if got == nil {
			return names + "-"
		}
		in[member] = got
		return names
	}
	weigh := func(member string, weight int) string {
		givenUp, ok := p.Weigh(in[member], weight)
		if names := remove(givenUp); ok {
			return names
		}
		return "-"
	}
	for i, step := range []struct {
		do   func(string, int) string
		on   string
		n    int
		want string // who gave up, and - for a refusal
		a, b int
	}{
		{take, "a1", 4, "", 4, 0},
		{take, "a2", 4, "", 8, 0},
		{take, "a3", 3, "-", 8, 0},
		{weigh, "a2", 6, "", 10, 0},
		{weigh, "a2", 7, "-", 10, 0}, // and it stays
		{take, "b1", 5, "-", 10, 0},  // a would have less than b
		{take, "b1", 3, "a2", 4, 3},
		{weigh, "b1", 6, "", 4, 6},
		{take, "a4", 1, "-", 4, 6}, // b would have nothing
		{weigh, "b1", 2, "", 4, 2},
		{take, "b2", 2, "", 4, 4},
		{take, "b3", 2, "", 4, 6},
		{weigh, "a1", 5, "-", 4, 6},  // b would have 4 then
		{weigh, "a1", 11, "-", 4, 6}, // more than there is
		{take, "c1", 2, "b3", 4, 4},
	} {
		if got := step.do(step.on, step.n); got != step.want || p.Of("a") != step.a || p.Of("b") != step.b {
			t.Errorf("step %d, %s: %q gave up, then a has %d and b %d; want %q, %d and %d", i, step.on, got, p.Of("a"), p.Of("b"), step.want, step.a, step.b)
		}
		if p.Taken > p.Most || p.Taken != p.Of("a")+p.Of("b")+p.Of("c") {
			t.Errorf("step %d: %d of %d are taken", i, p.Taken, p.Most)
		}
	}
	p.Free(in["a1"])
	if givenUp, ok := p.Weigh(in["a1"], 1); ok || givenUp != nil || p.Of("a") != 0 {
		t.Error("a place that is free was given weight")
	}
}

// TestWhatAPodTakes: the figures of docs/operations.md.
func TestWhatAPodTakes(t *testing.T) {
	for limits, want := range map[int]int{0: 64, 1: 64, 2: 66, 100: 262} {
		if got := Weight(limits); got != want {
			t.Errorf("%d limits: %d KiB, want %d", limits, got, want)
		}
	}
}

// TestRoomInAContainer: the figures of docs/operations.md.
func TestRoomInAContainer(t *testing.T) {
	const mebibyte = 1 << 20
	for _, tc := range []struct {
		heap          int64
		pods, pending int
	}{
		{512 * mebibyte / 5 * 4, 6553, 1310},
		{math.MaxInt64, 6553, 1310},
		{2048 * mebibyte / 5 * 4, 26214, 5242},
		{1, 1, 2},
	} {
		if p, s := PodsIn(tc.heap), ConnectionsIn(tc.heap); p != tc.pods || s != tc.pending {
			t.Errorf("a heap of %d MiB has room for %d pods and %d strangers, want %d and %d", tc.heap/mebibyte, p, s, tc.pods, tc.pending)
		}
	}
}
