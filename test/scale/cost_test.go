package main

import (
	"testing"
	"time"
)

func TestCostOfOne(t *testing.T) {
	before := cost{leader: time.Second, servers: 2 * time.Second, tool: 3 * time.Second, writes: 4}
	after := cost{leader: 2 * time.Second, servers: 6 * time.Second, tool: 3 * time.Second, writes: 24}
	want := cost{leader: 100 * time.Millisecond, servers: 400 * time.Millisecond, writes: 2}
	if got := after.since(before).of(10); got != want {
		t.Errorf("one of 10 took %+v, want %+v", got, want)
	}
	if got := milliseconds(want.leader); got != "100.0 ms" {
		t.Errorf("it is written %q", got)
	}
}
