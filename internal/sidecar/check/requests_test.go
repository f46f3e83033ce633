package check

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
)

func TestListsThatAreRefused(t *testing.T) {
	l := `{"policy":"p","limit":"l"}`
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"no list":               {`{"limits":{}}`, []string{`"limits"`, "not a list"}},
		"null":                  {`{"limits":null}`, []string{`"limits"`, "not a list"}},
		"an empty list":         {`{"limits":[]}`, []string{`"limits"`, "empty"}},
		"half a list":           {`{"limits":[` + l, []string{"JSON"}},
		"the same parts":        {`{"limits":[{"policy":"p","limit":"l","key":["a","b"]},{"policy":"p","limit":"l","key":["a","b"]}]}`, []string{"limits[0]", "together"}},
		"a comma too many":      {`{"limits":[` + l + `,]}`, []string{"limits[1]"}},
		"a string in it":        {`{"limits":[` + l + `,"p"]}`, []string{`"limits[1]"`, "not an object"}},
		"a list in it":          {`{"limits":[[` + l + `]]}`, []string{`"limits[0]"`, "not an object"}},
		"a limit without name":  {`{"limits":[` + l + `,{"policy":"p"}]}`, []string{`"limits[1].limit"`, "missing"}},
		"a cost of nothing":     {`{"limits":[{"policy":"p","limit":"l","cost":0}]}`, []string{`"limits[0].cost"`}},
		"an unknown field":      {`{"limits":[{"policy":"p","limit":"l","peek":true}]}`, []string{`"limits[0].peek"`, "cost"}},
		"a field twice":         {`{"limits":[{"policy":"p","policy":"p","limit":"l"}]}`, []string{`"limits[0].policy"`, "twice"}},
		"the list twice":        {`{"limits":[` + l + `],"limits":[` + l + `]}`, []string{`"limits"`, "twice"}},
		"a field beside it":     {`{"limits":[` + l + `],"policy":"p"}`, []string{`"limits"`, "beside"}},
		"a field before it":     {`{"cost":2,"limits":[` + l + `]}`, []string{`"limits"`, "beside"}},
		"the same counter":      {`{"limits":[` + l + `,{"policy":"p","limit":"l","cost":3}]}`, []string{`"limits[1]"`, "limits[0]", "together"}},
		"more than are allowed": {`{"limits":[` + strings.Repeat(l+",", maxLimits) + l + `]}`, []string{`"limits`}},
		"data after it":         {`{"limits":[` + l + `]}{}`, []string{"more data"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseAll([]byte(tc.body))
			if err == nil {
				t.Fatal("took it")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestAListIsBounded: as many limits as are allowed, each another one, and no more.
func TestAListIsBounded(t *testing.T) {
	list := func(n int) []byte {
		var all []string
		for i := range n {
			all = append(all, `{"policy":"p","limit":"l","key":"`+strings.Repeat("k", i+1)+`"}`)
		}
		return []byte(`{"limits":[` + strings.Join(all, ",") + `]}`)
	}
	if qs, err := parseAll(list(maxLimits)); err != nil || len(qs) != maxLimits {
		t.Errorf("got %d, %v", len(qs), err)
	}
	if _, err := parseAll(list(maxLimits + 1)); err == nil || !strings.Contains(err.Error(), "more than 16") {
		t.Errorf("got %v", err)
	}
}

// FuzzParseAll checks the parser against the standard library's, as FuzzParse does.
func FuzzParseAll(f *testing.F) {
	f.Add([]byte(`{"policy":"p","limit":"l","key":"k","tenant":"t","cost":7}`))
	f.Add([]byte(`{"limits":[{"policy":"p","limit":"l","cost":1e2},{"policy":"p","limit":"m","key":"\u0000"}]}`))
	f.Add([]byte(`{"limits":[{"policy":"p","limit":"l"}],"cost":{}}`))
	f.Add([]byte(`{"limits":[{"policy":"p","limit":"l","key":["a","b"]},{"policy":"p","limit":"l","key":["ab",""]}]}`))
	f.Add([]byte(`{"limits":[[],{}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := parseAll(body)
		if err != nil {
			return
		}
		var want struct {
			wire
			Limits []json.RawMessage
		}
		want.Cost = 1
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("took %q, which is not a request: %v", body, err)
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			t.Fatalf("took %q, which is more than a request", body)
		}
		all := []enforce.Query{want.query()}
		if len(want.Limits) > 0 {
			all = nil
			for _, text := range want.Limits {
				q := wire{Cost: 1}
				if err := json.Unmarshal(text, &q); err != nil {
					t.Fatalf("took %q: %v", text, err)
				}
				all = append(all, q.query())
			}
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("%q reads differently (-want +got):\n%s", body, diff)
		}
		for i, q := range got {
			same := func(other enforce.Query) bool { return sameCounter(q, other) }
			if q.Policy == "" || q.Limit == "" || q.Cost < 1 || q.Peek || len(q.Key) > maxKey || slices.ContainsFunc(got[:i], same) {
				t.Errorf("took %+v", got)
			}
		}
		if len(got) > maxLimits {
			t.Errorf("took %d limits", len(got))
		}
	})
}
