package jwt

import (
	"encoding/binary"
	"testing"
)

func TestWhatIsRememberedIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ size, most int }{
		"in number": {1, maxTokens},
		"in bytes":  {MaxToken, maxBytes / MaxToken},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache()
			for i := range 2*tc.most + 1 {
				var name digest
				binary.BigEndian.PutUint64(name[:], uint64(i))
				for range 2 {
					c.put(name, acceptance{size: tc.size})
				}
				if _, ok := c.get(name); !ok {
					t.Fatalf("token %d is forgotten at once", i)
				}
			}
			if len(c.tokens) != tc.most || c.bytes != tc.most*tc.size {
				t.Errorf("%d tokens of %d bytes are remembered, want %d of %d", len(c.tokens), c.bytes, tc.most, tc.most*tc.size)
			}
		})
	}
}
