package storetest

import (
	"testing"

	"github.com/weir-dev/weir/pkg/store"
)

func testIsolation(t *testing.T, h harness) {
	p := fixed(1, 1, h.openWindow(t))
	base := store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}
	keys := []store.Key{{Scope: base}, {Scope: base, Hash: store.HashValue("a")}, {Scope: base, Hash: store.HashValue("b")}}
	for _, change := range []func(*store.Scope){
		func(s *store.Scope) { s.Cluster = "other" },
		func(s *store.Scope) { s.Namespace = "other" },
		func(s *store.Scope) { s.Policy = "other" },
		func(s *store.Scope) { s.Limit = "other" },
	} {
		scope := base
		change(&scope)
		keys = append(keys, store.Key{Scope: scope})
	}
	for _, k := range keys {
		if res := h.apply(t, k, p, take(1, 1)); res.Granted != 1 {
			t.Errorf("%s: got %v, want its own budget", k, res.Reason)
		}
	}
}
