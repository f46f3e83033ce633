package keys_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/keys"
)

// window is one of a limit of 100 units with blocks of 10.
var window = keys.Window{Index: 7, Pool: 100, Block: 10}

// aside has 10 units of every key, and 40 of group 3.
var aside = keys.Aside{Index: 7, Base: 10, Marks: []keys.Mark{{Group: 3, Units: 40}}}

func TestTake(t *testing.T) {
	fresh := keys.State{Saved: aside}
	for _, c := range []struct {
		name  string
		state keys.State
		w     keys.Window
		group int
		had   int64
		ask   keys.Ask
		want  keys.Grant
	}{
		{"what is set aside", fresh, window, 1, 0, keys.Ask{Min: 1, Want: 4}, keys.Grant{Units: 4, Remaining: 96}},
		{"and more ahead of need", fresh, window, 1, 0, keys.Ask{Min: 1, Want: 6}, keys.Grant{Units: 6, Remaining: 94, Raise: 16}},
		{"no more than is set aside", fresh, window, 1, 4, keys.Ask{Min: 1, Want: 20}, keys.Grant{Units: 6, Remaining: 90, Raise: 20}},
		{"less than the least is set aside", fresh, window, 1, 8, keys.Ask{Min: 3, Want: 3}, keys.Grant{Remaining: 92, Lacks: true, Raise: 18}},
		{"the least is more than a block", fresh, window, 1, 8, keys.Ask{Min: 30, Want: 30}, keys.Grant{Remaining: 92, Lacks: true, Raise: 38}},
		{"a group with a mark", fresh, window, 3, 8, keys.Ask{Min: 30, Want: 30}, keys.Grant{Units: 30, Remaining: 62, Raise: 48}},
		{"less than the least is left", fresh, window, 3, 98, keys.Ask{Min: 3, Want: 3}, keys.Grant{Remaining: 2}},
		{"the last units", keys.State{Saved: keys.Aside{Index: 7, Base: 100}}, window, 1, 97, keys.Ask{Min: 1, Want: 9}, keys.Grant{Units: 3}},
		{"a memory before", keys.Succeed(aside), window, 3, 0, keys.Ask{Min: 1, Want: 1}, keys.Grant{Remaining: 60, Lacks: true, Raise: 50}},
		{"a memory before, in a window that it did not know", keys.Succeed(aside), keys.Window{Index: 8, Pool: 100, Block: 10}, 3, 0, keys.Ask{Min: 1, Want: 1}, keys.Grant{Remaining: 100, Lacks: true, Raise: 10}},
		{"a window that is older than the record", keys.Succeed(aside), keys.Window{Index: 6, Pool: 100, Block: 10}, 3, 0, keys.Ask{Min: 1, Want: 1}, keys.Grant{}},
		{"windows of another length", keys.Succeed(aside), keys.Window{Length: 2, Index: 3, Pool: 100, Block: 10}, 3, 0, keys.Ask{Min: 1, Want: 1}, keys.Grant{Remaining: 100, Lacks: true, Raise: 10}},
		{"a limit that was lowered", fresh, keys.Window{Index: 7, Pool: 5, Block: 1}, 1, 6, keys.Ask{Min: 1, Want: 1}, keys.Grant{}},
		{"a memory that is not lost", keys.State{}, keys.Window{Index: 7, Pool: 100}, 1, 0, keys.Ask{Min: 1, Want: 200}, keys.Grant{Units: 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.state.Take(c.w, c.group, c.had, c.ask)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAside(t *testing.T) {
	next := keys.Window{Index: 8, Pool: 100, Block: 10}
	for _, c := range []struct {
		name   string
		state  keys.State
		w      keys.Window
		wants  map[int]int64
		shared int
		want   keys.Aside
	}{
		{"the first", keys.State{}, window, nil, 0, keys.Aside{Index: 7, Base: 10}},
		{
			"the same window",
			keys.State{Saved: aside},
			window,
			map[int]int64{3: 30, 1: 20},
			0,
			keys.Aside{Index: 7, Base: 10, Marks: []keys.Mark{{Group: 1, Units: 20}, {Group: 3, Units: 40}}},
		},
		{"the next window", keys.State{Saved: aside}, next, nil, 0, keys.Aside{Index: 8, Base: 10}},
		{"a smaller block", keys.State{Saved: aside}, keys.Window{Index: 8, Pool: 10, Block: 1}, nil, 0, keys.Aside{Index: 8, Base: 1}},
		{"another memory", keys.Succeed(aside), window, nil, 0, keys.Aside{Index: 7, Base: 20, Marks: aside.Marks}},
		{"another memory, in the next window", keys.Succeed(aside), next, nil, 0, keys.Aside{Index: 8, Base: 10}},
		{"windows of another length", keys.Succeed(aside), keys.Window{Length: 2, Index: 3, Pool: 100, Block: 10}, nil, 0, keys.Aside{Length: 2, Index: 3, Base: 10}},
		{"no mark where the base is enough", keys.State{Saved: aside}, next, map[int]int64{3: 10}, 0, keys.Aside{Index: 8, Base: 10}},
		{"keys that share counters", keys.State{Saved: aside}, window, nil, 2, keys.Aside{Index: 7, Base: 10, Marks: aside.Marks, Shared: 2}},
		{"and do not any more", keys.State{Saved: keys.Aside{Index: 7, Base: 10, Shared: 2}}, window, nil, 0, keys.Aside{Index: 7, Base: 10, Shared: 2}},
		{"nor in the next window", keys.State{Saved: keys.Aside{Index: 7, Base: 10, Shared: 2}}, next, nil, 0, keys.Aside{Index: 8, Base: 10}},
		{"a window that is older than the record", keys.State{Saved: aside}, keys.Window{Index: 6, Pool: 100, Block: 10}, map[int]int64{1: 20}, 0, aside},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.state.Aside(c.w, c.wants, c.shared)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	if aside.Marks[0].Units != 40 || len(aside.Marks) != 1 {
		t.Errorf("the record that was given is %v now", aside)
	}
}

func TestAMemoryThatEndsSetsNothingAside(t *testing.T) {
	s := keys.State{Before: aside, Saved: keys.Aside{Index: 7, Base: 20, Marks: []keys.Mark{{Group: 1, Units: 30}, {Group: 3, Units: 60}}}}
	want := keys.Aside{Index: 7, Base: 10, Marks: []keys.Mark{{Group: 1, Units: 12}, {Group: 3, Units: 45}}}
	if diff := cmp.Diff(want, s.Granted(window, map[int]int64{1: 2, 3: 5, 4: 0}, 0)); diff != "" {
		t.Error(diff)
	}
	want.Shared = 2
	if diff := cmp.Diff(want, s.Granted(window, map[int]int64{1: 2, 3: 5}, 2)); diff != "" {
		t.Error(diff)
	}
	s.Before.Shared = 2
	if diff := cmp.Diff(want, s.Granted(window, map[int]int64{1: 2, 3: 5}, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestARecordThatNobodyWroteIsRefused(t *testing.T) {
	for name, a := range map[string]keys.Aside{
		"window": {Index: -1}, "base": {Base: -1}, "shared": {Shared: -1}, "shared by more than there may be": {Shared: 100_001},
		"group":    {Marks: []keys.Mark{{Group: keys.Groups, Units: 1}}},
		"units":    {Marks: []keys.Mark{{Group: 1}}},
		"order":    {Marks: []keys.Mark{{Group: 2, Units: 1}, {Group: 1, Units: 1}}},
		"repeated": {Marks: []keys.Mark{{Group: 1, Units: 1}, {Group: 1, Units: 1}}},
	} {
		if a.Validate() == nil {
			t.Errorf("%s: %v is valid", name, a)
		}
	}
}
