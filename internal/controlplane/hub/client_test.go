package hub

import (
	"strings"
	"testing"
)

// TestConnectionsAreShared by clients of one hub with the same credentials.
func TestConnectionsAreShared(t *testing.T) {
	w := newWorld(t).start(t)
	p, _ := w.budgets.Budget(budgetID)
	var all Connections
	open := func(secret map[string][]byte) *Client {
		client, err := all.Open(w.address, secret)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	one, two, other := open(w.secret(t, "b")), open(w.secret(t, "b")), open(w.secret(t, "c"))
	if one.conn != two.conn || one.conn == other.conn {
		t.Error("connections are not one for each endpoint and credentials")
	}
	one.Close()
	one.Close()
	if _, err := two.Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Errorf("after another client was closed: %v", err)
	}
	two.Close()
	other.Close()
	if len(all.open) > 0 {
		t.Errorf("%d connections stay open", len(all.open))
	}
}

// TestOpenNamesWhatIsWrong with an endpoint or a Secret, and shows nothing of it.
func TestOpenNamesWhatIsWrong(t *testing.T) {
	w := newWorld(t).start(t)
	good := w.secret(t, "b")
	for what, test := range map[string]struct {
		endpoint string
		secret   map[string][]byte
	}{
		"spec.hub.endpoint":   {"hub", good},
		"endpoint \"hub:0\"":  {"hub:0", good},
		"endpoint \":15040\"": {":15040", good},
		AuthorityKey:          {"hub:1", with(good, map[string][]byte{AuthorityKey: nil})},
		CertificateKey:        {"hub:1", with(good, map[string][]byte{CertificateKey: []byte("x")})},
		PrivateKey:            {"hub:1", with(good, part(w.secret(t, "c"), PrivateKey))},
		TokenKey:              {"hub:1", with(good, map[string][]byte{TokenKey: []byte("two\nlines")})},
		"spec.hub.secretRef":  {"hub:1", nil},
	} {
		if _, err := new(Connections).Open(test.endpoint, test.secret); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
