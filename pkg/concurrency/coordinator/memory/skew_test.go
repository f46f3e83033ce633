package memory_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/coordinator/memory"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// rewritten is an export as another version would write it.
func rewritten(t *testing.T, data []byte, change func(string) string) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(text))
	if changed == string(text) {
		t.Fatalf("nothing changed in %s", text)
	}
	var out bytes.Buffer
	out.WriteByte(data[0])
	stream := gzip.NewWriter(&out)
	if _, err := io.WriteString(stream, changed); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// inPool returns a change of the text behind the name of a pool.
func inPool(name, old, changed string) func(string) string {
	return func(text string) string {
		before, after, _ := strings.Cut(text, `"Name":"`+name+`"`)
		return before + `"Name":"` + name + `"` + strings.Replace(after, old, changed, 1)
	}
}

// TestAPoolThatIsNotUnderstoodIsLostAlone hands two pools over, long after their
// coordinator began. A later version wrote one of them. The share of its holder may be
// in use, so the next one that asks gets nothing.
func TestAPoolThatIsNotUnderstoodIsLostAlone(t *testing.T) {
	other := web
	other.Name = "other"
	for name, change := range map[string]func(string) string{
		"an unknown field of the pool":   inPool("web", `"memory":{`, `"memory":{"lent":5,`),
		"an unknown field of a holder":   inPool("web", `"share":`, `"lent":5,"share":`),
		"an unknown field beside it":     inPool("web", `,"memory":{`, `,"lent":5,"memory":{`),
		"an unknown field of its name":   inPool("web", `},"memory":{`, `,"Zone":"a"},"memory":{`),
		"a value that is not possible":   inPool("web", `"limit":`, `"limit":-1`),
		"a later term":                   inPool("web", `"term":3`, `"term":9`),
		"a value of another type":        inPool("web", `"bound":`, `"bound":"x","b":`),
		"a name that cannot be read":     func(s string) string { return strings.Replace(s, `"Name":"web"`, `"Name":7`, 1) },
		"another name, so nothing of it": func(s string) string { return strings.Replace(s, `"Name":"web"`, `"Name":"was","Zone":"a"`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			now := suite.NewClock(suite.Start)
			before := memory.New(memory.Options{Clock: now.Now, Term: 3, First: true})
			now.Advance(pool.MaxTTL)
			var held pool.Grant
			for _, key := range []pool.Key{web, other} {
				held = beat(t, before, key, pool.Command{Holder: "a", Seq: 1})
			}
			if held.Share == 0 {
				t.Fatal("nothing is in use")
			}
			data := rewritten(t, export(t, before), change)

			next := memory.New(memory.Options{Clock: now.Now, Term: 4})
			if err := next.Import(data); err == nil {
				t.Error("nothing is said of it")
			}
			if g := beat(t, next, web, pool.Command{Holder: "b", Seq: 1}); g.Quarantined == 0 || g.Share != 0 {
				t.Errorf("of the pool that is not understood b got %+v, a has %d", g, held.Share)
			}
			again := pool.Command{Holder: "a", Seq: 2, Term: held.Term, Applied: held.Generation, Held: held.Share}
			if g := beat(t, next, other, again); g.Quarantined != 0 || g.Share != held.Share {
				t.Errorf("of the other pool a got %+v, and had %d", g, held.Share)
			}
			if next.Len() != 2 {
				t.Errorf("%d pools", next.Len())
			}
		})
	}
}

// TestAnUnknownQuarantineIsHandedOn: the coordinator after the next knows
// nothing of the pool, whose shares are in use all the same.
func TestAnUnknownQuarantineIsHandedOn(t *testing.T) {
	now := suite.NewClock(suite.Start)
	before := memory.New(memory.Options{Clock: now.Now, Term: 3, First: true})
	now.Advance(pool.MaxTTL)
	held := beat(t, before, web, pool.Command{Holder: "a", Seq: 1})
	data := rewritten(t, export(t, before), inPool("web", `"memory":{`, `"memory":{"lent":5,`))

	next := memory.New(memory.Options{Clock: now.Now, Term: 4})
	if err := next.Import(data); err == nil {
		t.Error("nothing is said of it")
	}
	now.Advance(limiter.Second / 2)
	last := memory.New(memory.Options{Clock: now.Now, Term: 5})
	if err := last.Import(export(t, next)); err != nil {
		t.Fatal(err)
	}
	if g := beat(t, last, web, pool.Command{Holder: "b", Seq: 1}); g.Quarantined != 3*limiter.Second/2 || g.Share != 0 {
		t.Errorf("b got %+v, a has %d for another 1.5 s", g, held.Share)
	}
}

// TestUnknownDataBesideThePoolsLosesAllOfThem: it may be of each of them.
func TestUnknownDataBesideThePoolsLosesAllOfThem(t *testing.T) {
	now := suite.NewClock(suite.Start)
	before := memory.New(memory.Options{Clock: now.Now, Term: 3, First: true})
	beat(t, before, web, pool.Command{Holder: "a", Seq: 1})
	data := rewritten(t, export(t, before), func(s string) string { return strings.Replace(s, `"age"`, `"lent":5,"age"`, 1) })
	next := memory.New(memory.Options{Clock: now.Now, Term: 4})
	if err := next.Import(data); err == nil || next.Len() != 0 {
		t.Errorf("%d pools, error %v", next.Len(), err)
	}
}
