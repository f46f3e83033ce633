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
				got, givenUp := p.Take(tc.in[i], i)
				if givenUp != nil {
					delete(has, givenUp.Member)
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
	first, _ := p.Take("a", 1)
	_, _ = p.Take("a", 2)
	for range 2 {
		p.Free(first)
	}
	p.Free(nil)
	if p.Taken != 1 || p.Of("a") != 1 {
		t.Errorf("%d places are taken, %d by the group; want 1", p.Taken, p.Of("a"))
	}
	if got, givenUp := p.Take("b", 3); got == nil || givenUp != nil || p.Taken != 2 {
		t.Errorf("%d places are taken, want 2", p.Taken)
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
