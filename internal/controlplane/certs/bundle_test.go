package certs

import (
	"crypto/x509"
	"testing"
	"time"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"weir-webhook.weir-system.svc", "weir-fleet.weir-system.svc", "127.0.0.1"}
)

func mustRenew(t *testing.T, stored, memory bundle, now time.Time) bundle {
	t.Helper()
	b, err := renewed(stored, memory, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// requireTrusted checks that a client that learned the authority accepts the
// serving certificate for every name at the instant.
func requireTrusted(t *testing.T, serving, authority *pair, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	for _, name := range names {
		_, err := serving.certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})
		if err != nil {
			t.Errorf("%s at %s: %v", name, now, err)
		}
	}
}

func TestRenewed(t *testing.T) {
	const day = 24 * time.Hour
	first := mustRenew(t, bundle{}, bundle{}, epoch)
	foreign := mustRenew(t, bundle{}, bundle{}, epoch)
	tests := map[string]struct {
		stored, memory bundle
		after          time.Duration
		wantAuthority  bool // that it is first's
		wantServing    bool // that it is first's
	}{
		"nothing is there yet":                         {},
		"all is well":                                  {stored: first, after: 10 * day, wantAuthority: true, wantServing: true},
		"the last minute of two thirds":                {stored: first, after: 20*day - time.Hour, wantAuthority: true, wantServing: true},
		"two thirds are over":                          {stored: first, after: 20*day + time.Hour, wantAuthority: true},
		"the clock jumps by a year":                    {stored: first, after: 365 * day, wantAuthority: true},
		"the clock jumps back":                         {stored: first, after: -day},
		"the Secret is gone and memory has it":         {memory: first, after: day, wantAuthority: true},
		"the authority is damaged and memory has it":   {stored: bundle{serving: first.serving}, memory: first, wantAuthority: true, wantServing: true},
		"the authority is damaged and nobody knows it": {stored: bundle{serving: first.serving}},
		"the serving certificate is damaged":           {stored: bundle{authority: first.authority}, memory: first, wantAuthority: true},
		"the serving certificate is another's":         {stored: bundle{first.authority, foreign.serving}, wantAuthority: true},
		"the Secret has another authority than memory": {stored: first, memory: foreign, wantAuthority: true, wantServing: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := epoch.Add(tc.after)
			got := mustRenew(t, tc.stored, tc.memory, now)
			requireTrusted(t, got.serving, got.authority, now)
			if kept := got.authority.equal(first.authority); kept != tc.wantAuthority {
				t.Errorf("authority kept: %t, want %t", kept, tc.wantAuthority)
			}
			if kept := got.serving.equal(first.serving); kept != tc.wantServing {
				t.Errorf("serving certificate kept: %t, want %t", kept, tc.wantServing)
			}
			if got.serving.due(now) || got.authority.due(now) {
				t.Error("the result is due again at once")
			}
		})
	}
}

func TestNewNameIsServed(t *testing.T) {
	first := mustRenew(t, bundle{}, bundle{}, epoch)
	more, err := renewed(first, first, append([]string{"localhost"}, names...), epoch)
	if err != nil {
		t.Fatal(err)
	}
	if err := more.serving.certificate.VerifyHostname("localhost"); err != nil {
		t.Error(err)
	}
	if !more.authority.equal(first.authority) {
		t.Error("a new name changed the authority")
	}
}

// TestAuthorityRenewalKeepsTrust: sidecars learn the authority when they are
// injected and do not hear of a new one.
func TestAuthorityRenewalKeepsTrust(t *testing.T) {
	first := mustRenew(t, bundle{}, bundle{}, epoch)
	now := epoch.Add(authorityLife * 3 / 4)
	second := mustRenew(t, first, first, now)
	if second.authority.equal(first.authority) {
		t.Fatal("the authority was not renewed after three quarters of its life")
	}
	requireTrusted(t, second.serving, first.authority, now)
	requireTrusted(t, second.serving, second.authority, now)
}

func TestDecodeRefuses(t *testing.T) {
	b := mustRenew(t, bundle{}, bundle{}, epoch)
	ca, caKey, err := b.authority.encode()
	if err != nil {
		t.Fatal(err)
	}
	leaf, leafKey, err := b.serving.encode()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string][]byte{
		"an empty Secret":              {},
		"text that is not PEM":         {"ca.crt": []byte("x"), "ca.key": caKey},
		"a key of another":             {"ca.crt": ca, "ca.key": leafKey},
		"a certificate cut short":      {"ca.crt": ca[:len(ca)/2], "ca.key": caKey},
		"an authority that is not one": {"ca.crt": leaf, "ca.key": leafKey},
		"a serving key cut short":      {"tls.crt": leaf, "tls.key": leafKey[:len(leafKey)/2]},
		"a serving key that is gone":   {"tls.crt": leaf},
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if got := bundleOf(data); got != (bundle{}) {
				t.Errorf("bundleOf accepts %+v", got)
			}
		})
	}
	whole := bundleOf(map[string][]byte{"ca.crt": ca, "ca.key": caKey, "tls.crt": leaf, "tls.key": leafKey})
	if !whole.equal(b) {
		t.Error("what was encoded does not decode")
	}
}
