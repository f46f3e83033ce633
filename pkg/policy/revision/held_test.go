package revision_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
)

// A message is one that a controller sent.
type message struct {
	to   version
	edit *revision.Edit // nil: the whole
}

// take returns what a holder has after the message.
func take(h *revision.Held, m message) *revision.Held {
	next, err := h.Whole(m.to.name, m.to.data)
	if m.edit != nil {
		next, err = h.Edited(*m.edit)
	}
	if err != nil {
		return h
	}
	return next
}

// TestNoOrderOfMessagesMixesVersions loses, repeats and exchanges messages, wholes and edits. What is held
// is always one of the versions that were published, and after one whole and the edits behind it the
// last.
func TestNoOrderOfMessagesMixesVersions(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		text, versions := map[string]string{"": "null"}, []version{}
		for range 12 {
			v := published(t, draw(r))
			versions = append(versions, v)
			text[v.name] = enforced(t, whole(t, new(revision.Held), v))
		}
		var sent []message
		for i, v := range versions {
			sent = append(sent, message{to: v})
			for range 2 {
				base := versions[r.IntN(max(1, i))]
				e := editOf(t, base, v)
				sent = append(sent, message{v, &e})
			}
		}
		held := new(revision.Held)
		check := func() {
			t.Helper()
			if held.Set != nil && enforced(t, held) != text[held.Version] {
				t.Fatalf("seed %d: as version %s is enforced %s, which is %s", seed, held.Version, enforced(t, held), text[held.Version])
			}
		}
		for range 200 {
			held = take(held, sent[r.IntN(len(sent))])
			check()
		}
		held = take(held, message{to: versions[0]})
		for i := 1; i < len(versions); i++ {
			e := editOf(t, versions[i-1], versions[i])
			held = take(held, message{versions[i], &e})
			check()
		}
		if held.Version != versions[len(versions)-1].name {
			t.Fatalf("seed %d: after all edits in their order version %s is held", seed, held.Version)
		}
	}
}

// TestOnlyWhatChangedIsCompiled, by an edit and by a whole.
func TestOnlyWhatChangedIsCompiled(t *testing.T) {
	a := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1), named("b", 1), named("c", 1), named("e", 1)}})
	b := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1), named("b", 2), named("d", 1), named("e", 1)}})
	held := whole(t, new(revision.Held), a)
	edited, err := held.Edited(editOf(t, a, b))
	if err != nil {
		t.Fatal(err)
	}
	for name, next := range map[string]*revision.Held{"an edit": edited, "a whole": whole(t, held, b)} {
		for _, p := range []string{"a", "b", "d", "e"} {
			same := next.Set.Lookup("shop", p, "all") == held.Set.Lookup("shop", p, "all")
			if want := p == "a" || p == "e"; same != want {
				t.Errorf("by %s %s is kept: %t, want %t", name, p, same, want)
			}
		}
		if next.Set.Lookup("shop", "b", "all").Policy.Generation != 2 || next.Set.Lookup("shop", "c", "all") != nil {
			t.Errorf("by %s what changed is not in force", name)
		}
	}
}

// TestNothingIsBuiltOnAPart: of a version that is not understood as a whole, the last good version of the
// part is held.
func TestNothingIsBuiltOnAPart(t *testing.T) {
	first := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 1), named("b", 1)}}
	second := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 2), named("b", 2)}}
	third := policy.Snapshot{Cluster: "test", Policies: []policy.Policy{named("a", 3), named("b", 2)}}
	withHours := func(s policy.Snapshot) version {
		data := []byte(strings.Replace(string(published(t, s).data), `"name":"b",`, `"name":"b","hours":[9,17],`, 1))
		return version{policy.Version(data), data}
	}
	v := withHours(second)
	held := whole(t, whole(t, new(revision.Held), published(t, first)), v)
	if len(held.Refused) != 1 || !held.Refused[0].Kept {
		t.Fatalf("refused is %v", held.Refused)
	}
	for name, want := range map[string]int64{"a": 2, "b": 1} {
		if got := held.Set.Lookup("shop", name, "all").Policy.Generation; got != want {
			t.Errorf("generation %d of %s is held, want %d", got, name, want)
		}
	}
	// The edit does not have the part, which is the same in both.
	if _, err := held.Edited(editOf(t, v, withHours(third))); !errors.Is(err, revision.ErrBase) {
		t.Errorf("got error %v, want one that asks for the whole", err)
	}
	if held = whole(t, held, published(t, third)); len(held.Refused) > 0 || held.Set.Lookup("shop", "b", "all").Policy.Generation != 2 {
		t.Errorf("the whole is held as %s", enforced(t, held))
	}
}

// keys is a set of one key.
const keys = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

// TestKeysThatWereNotReadStay, of a policy that changed and of another.
func TestKeysThatWereNotReadStay(t *testing.T) {
	of := func(name string, generation int64, keys string) policy.Policy {
		p := named(name, generation)
		p.JWTProviders = []policy.JWTProvider{{Name: "i", Issuer: "i", Algorithms: []string{"EdDSA"}, URL: "https://i.example.com", Keys: keys}}
		return p
	}
	read := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{of("a", 1, keys), of("b", 1, keys)}})
	unread := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{of("a", 1, ""), of("b", 1, "")}})
	edited := published(t, policy.Snapshot{Cluster: "test", Policies: []policy.Policy{of("a", 2, ""), of("b", 1, "")}})
	held := whole(t, whole(t, new(revision.Held), read), unread)
	next, err := held.Edited(editOf(t, unread, edited))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range next.Set.Snapshot.Policies {
		if p.JWTProviders[0].Keys != keys || p.Generation != int64(2-i) {
			t.Errorf("generation %d of %s verifies by %q", p.Generation, p.Name, p.JWTProviders[0].Keys)
		}
	}
}

// modelled returns the snapshot that follows when data is put over base, and removed is taken out.
func modelled(t testing.TB, base, data []byte, removed []revision.Name) []byte {
	t.Helper()
	before, err := policy.Split(base)
	if err != nil {
		t.Fatal(err)
	}
	put, err := policy.Split(data)
	if err != nil {
		return nil
	}
	type named struct{ Namespace, Name string }
	nameOf := func(raw json.RawMessage) (n named) {
		_ = json.Unmarshal(raw, &n)
		return n
	}
	over := func(kind revision.Kind, before, put []json.RawMessage) (out []json.RawMessage) {
		all := map[named]json.RawMessage{}
		for _, raw := range before {
			all[nameOf(raw)] = raw
		}
		for _, n := range removed {
			if n.Kind == kind {
				delete(all, named{n.Namespace, n.Name})
			}
		}
		for _, raw := range put {
			all[nameOf(raw)] = raw
		}
		for _, raw := range all {
			out = append(out, raw)
		}
		slices.SortFunc(out, func(a, b json.RawMessage) int {
			x, y := nameOf(a), nameOf(b)
			return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
		})
		return out
	}
	one := func(raw json.RawMessage) []json.RawMessage {
		if raw == nil {
			return nil
		}
		return []json.RawMessage{raw}
	}
	next := policy.Entries{
		Cluster: put.Cluster, Policies: over(revision.Policy, before.Policies, put.Policies), Pools: over(revision.Pools, before.Pools, put.Pools),
	}
	switch all := over(revision.Pool, one(before.Pool), one(put.Pool)); len(all) {
	case 0:
	case 1:
		next.Pool = all[0]
	default:
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return nil
	}
	return text
}

// FuzzEdited compares what an edit makes with the whole that it stands for: by the digest of that, it makes
// the same or nothing, and by another one nothing.
func FuzzEdited(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	base := published(f, draw(r))
	for range 16 {
		e := editOf(f, base, published(f, draw(r)))
		name := "p0"
		if len(e.Removed) > 0 {
			name = e.Removed[0].Name
		}
		f.Add(e.Data, name, uint8(len(e.Removed)))
	}
	held := whole(f, new(revision.Held), base)
	kinds := []revision.Kind{revision.Policy, revision.Pool, revision.Pools, "other"}
	f.Fuzz(func(t *testing.T, data []byte, name string, kind uint8) {
		e := revision.Edit{
			Base: base.name, Version: "next", Data: data,
			Removed: []revision.Name{{Kind: kinds[int(kind)%len(kinds)], Namespace: "shop", Name: name}},
		}
		if _, err := held.Edited(e); !errors.Is(err, revision.ErrBase) {
			t.Fatalf("without a digest: %v", err)
		}
		text := modelled(t, base.data, data, e.Removed)
		if text == nil {
			return
		}
		content, err := revision.ContentOf(text)
		if err != nil {
			return
		}
		e.Digest = content.Digest()
		next, err := held.Edited(e)
		if err != nil {
			if !errors.Is(err, revision.ErrBase) {
				t.Fatalf("it fails, and the whole is not asked for: %v", err)
			}
			return
		}
		want, err := held.Whole("next", text)
		if err != nil || len(want.Refused) > 0 {
			t.Fatalf("it is made, but the whole is refused: %v, %v", err, want)
		}
		if a, b := enforced(t, next), enforced(t, want); a != b {
			t.Fatalf("it makes %s, want %s", a, b)
		}
	})
}
