package revision_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
)

// TestAnEditMakesWhatTheWholeMakes, and has no more than what differs.
func TestAnEditMakesWhatTheWholeMakes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		from, to := draw(r), draw(r)
		a, b := published(t, from), published(t, to)
		e := editOf(t, a, b)
		held := whole(t, new(revision.Held), a)
		next, err := held.Edited(e)
		if err != nil {
			t.Fatalf("%v of %s by %s", err, a.data, e.Data)
		}
		if got, want := enforced(t, next), enforced(t, whole(t, new(revision.Held), b)); got != want || next.Version != b.name {
			t.Fatalf("version %s is %s, want %s: %s", next.Version, got, b.name, want)
		}
		entries, err := policy.Split(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range entries.Policies {
			var p policy.Policy
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(from.Policies, func(q policy.Policy) bool { return q.Name == p.Name && q.Generation == p.Generation }) {
				t.Fatalf("policy %s is sent, which did not change", p.Name)
			}
		}
	}
}

// TestNothingElseIsMadeOfAnEdit: what was torn, or is of another version, leaves all as it is.
func TestNothingElseIsMadeOfAnEdit(t *testing.T) {
	first := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1), named("b", 1), named("c", 1)}}
	next := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1), named("b", 2), named("d", 1)}}
	elsewhere := next
	elsewhere.Cluster = "other"
	a, b := published(t, first), published(t, next)
	all := pool("all", 1, false)
	for name, spoil := range map[string]func(*revision.Edit){
		"of another version":  func(e *revision.Edit) { e.Base = b.name },
		"of no version":       func(e *revision.Edit) { e.Base = "" },
		"with another digest": func(e *revision.Edit) { e.Digest = editOf(t, b, a).Digest },
		"without a digest":    func(e *revision.Edit) { e.Digest = nil },
		"that removes less":   func(e *revision.Edit) { e.Removed = nil },
		"that removes more": func(e *revision.Edit) {
			e.Removed = append(e.Removed, revision.Name{Kind: revision.Policy, Namespace: "shop", Name: "a"})
		},
		"that removes another kind": func(e *revision.Edit) { e.Removed[0].Kind = revision.Pools },
		"with another entry":        func(e *revision.Edit) { e.Data = editOf(t, b, a).Data },
		"with half an entry":        func(e *revision.Edit) { e.Data = e.Data[:len(e.Data)/2] },
		"with no entry":             func(e *revision.Edit) { e.Data = published(t, policy.Snapshot{Cluster: "test"}).data },
		"with no data":              func(e *revision.Edit) { e.Data = nil },
		"of another cluster": func(e *revision.Edit) {
			e.Data = editOf(t, published(t, policy.Snapshot{Cluster: "other"}), published(t, elsewhere)).Data
		},
		"with a pool": func(e *revision.Edit) {
			e.Data = editOf(t, a, published(t, policy.Snapshot{Cluster: "test", Pool: &all})).Data
		},
		"that is not understood":             func(e *revision.Edit) { *e = later(t, a, e) },
		"with a field beside what is edited": func(e *revision.Edit) { e.Data = append([]byte(`{"more":1,`), e.Data[1:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			held := whole(t, new(revision.Held), a)
			e := editOf(t, a, b)
			spoil(&e)
			if _, err := held.Edited(e); !errors.Is(err, revision.ErrBase) {
				t.Errorf("got error %v, want one that asks for the whole", err)
			}
			if _, err := held.Edited(editOf(t, a, b)); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// later returns the edit with a field in a policy that only a later version knows, and with the digest
// of that.
func later(t *testing.T, base version, e *revision.Edit) revision.Edit {
	t.Helper()
	spoiled := *e
	entries, err := policy.Split(e.Data)
	if err != nil {
		t.Fatal(err)
	}
	entries.Policies[0] = append([]byte(`{"hours":[9,17],`), entries.Policies[0][1:]...)
	if spoiled.Data, err = json.Marshal(entries); err != nil {
		t.Fatal(err)
	}
	of, err := revision.ContentOf(modelled(t, base.data, spoiled.Data, e.Removed))
	if err != nil {
		t.Fatal(err)
	}
	spoiled.Digest = of.Digest()
	return spoiled
}

// TestAVersionThatIsHeldIsMadeOfAny: the whole of it came before the edit. One that is understood in part is
// not held.
func TestAVersionThatIsHeldIsMadeOfAny(t *testing.T) {
	a := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1)}})
	b := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 2), named("b", 1)}})
	held := whole(t, new(revision.Held), b)
	if next, err := held.Edited(editOf(t, a, b)); err != nil || next.Version != b.name || enforced(t, next) != enforced(t, held) {
		t.Errorf("an edit to what is held makes %v, error %v", next, err)
	}
	for name, spoil := range map[string]func(*revision.Edit){
		"another version":             func(e *revision.Edit) { e.Version = a.name },
		"another digest":              func(e *revision.Edit) { e.Digest = editOf(t, b, a).Digest },
		"no digest, as of no version": func(e *revision.Edit) { e.Digest = nil },
	} {
		e := editOf(t, a, b)
		spoil(&e)
		if _, err := held.Edited(e); !errors.Is(err, revision.ErrBase) {
			t.Errorf("%s: got error %v, want one that asks for the whole", name, err)
		}
	}
	half := []byte(strings.Replace(string(b.data), `"name":"b"`, `"name":"b","hours":[9,17]`, 1))
	of, err := revision.ContentOf(half)
	if err != nil {
		t.Fatal(err)
	}
	if held, err = new(revision.Held).Whole(b.name, half); err != nil || len(held.Refused) != 1 {
		t.Fatalf("held is %+v, error %v", held, err)
	}
	e := editOf(t, a, b)
	e.Digest = of.Digest()
	if _, err := held.Edited(e); !errors.Is(err, revision.ErrBase) {
		t.Errorf("of a part: got error %v, want one that asks for the whole", err)
	}
}

// TestTwoPoolsOfAllRequestsAreNotMade: the one that an edit brings would take the place of another, which
// it does not remove.
func TestTwoPoolsOfAllRequestsAreNotMade(t *testing.T) {
	one, other := pool("a", 1, false), pool("b", 1, false)
	from := published(t, policy.Snapshot{Cluster: "test", Pool: &one})
	to := published(t, policy.Snapshot{Cluster: "test", Pool: &other})
	held, e := whole(t, new(revision.Held), from), editOf(t, from, to)
	e.Removed = nil
	e.Digest = bothOf(t, from, to)
	if next, err := held.Edited(e); !errors.Is(err, revision.ErrBase) {
		t.Errorf("made %v, error %v; want an error that asks for the whole", next, err)
	}
}

// bothOf returns the digest of a content with the pools of all requests of two versions, which no snapshot
// has.
func bothOf(t *testing.T, from, to version) []byte {
	t.Helper()
	all := append(binary.AppendUvarint(nil, uint64(len("test"))), "test"...)
	for _, v := range []version{from, to} {
		e, err := policy.Split(v.data)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(e.Pool)
		all = append(append(append(all, revision.Pool...), 0), sum[:]...)
	}
	sum := sha256.Sum256(all)
	return sum[:]
}

// TestClustersAreNotEditedIntoEachOther: their counters have other names.
func TestClustersAreNotEditedIntoEachOther(t *testing.T) {
	var of []*revision.Content
	for _, cluster := range []string{"one", "other"} {
		c, err := revision.ContentOf(published(t, policy.Snapshot{Cluster: cluster}).data)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, c)
	}
	if _, err := revision.Between(of[0], of[1]); err == nil {
		t.Error("there is an edit")
	}
}
