package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/controlplane/storeprobe"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// withAddresses returns the addresses by some flags, beside an API server.
func withAddresses(t *testing.T, server string, flags ...string) *addresses {
	t.Helper()
	o, err := parse(append(flags, "--sidecar-image=x"), environment(nil), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAddresses(&o, &rest.Config{Host: server})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAddressesThatAreDialled(t *testing.T) {
	const server = "https://192.0.2.1:6443"
	for name, tc := range map[string]struct {
		network, address string
		flags            []string
		allowed          bool
	}{
		"a pod":                            {address: "10.1.2.3:6379", allowed: true},
		"a machine":                        {address: "203.0.113.7:5432", allowed: true},
		"a pod by IPv6":                    {address: "[fd00::7]:6379", allowed: true},
		"loopback":                         {address: "127.0.0.1:6379"},
		"all of loopback":                  {address: "127.88.0.1:6379"},
		"loopback by IPv6":                 {address: "[::1]:6379"},
		"loopback as IPv6":                 {address: "[::ffff:127.0.0.1]:6379"},
		"loopback by NAT64":                {address: "[64:ff9b::7f00:1]:6379"},
		"metadata":                         {address: "169.254.169.254:80"},
		"metadata as IPv6":                 {address: "[::ffff:169.254.169.254]:80"},
		"metadata by NAT64":                {address: "[64:ff9b::a9fe:a9fe]:80"},
		"metadata of Amazon by IPv6":       {address: "[fd00:ec2::254]:80"},
		"metadata of Azure":                {address: "168.63.129.16:80"},
		"link-local by IPv6":               {address: "[fe80::1%eth0]:6379"},
		"unspecified":                      {address: "0.0.0.0:6379"},
		"this network":                     {address: "0.1.2.3:6379"},
		"unspecified by IPv6":              {address: "[::]:6379"},
		"multicast":                        {address: "224.0.0.1:6379"},
		"multicast by IPv6":                {address: "[ff02::1]:6379"},
		"broadcast":                        {address: "255.255.255.255:6379"},
		"a socket":                         {network: "unix", address: "/run/redis.sock"},
		"the API server":                   {address: "192.0.2.1:6443"},
		"the API server as IPv6":           {address: "[::ffff:192.0.2.1]:6443"},
		"its machine":                      {address: "192.0.2.1:10250"},
		"its machine, allowed":             {address: "192.0.2.1:6379", flags: []string{"--allow-store-cidrs=192.0.2.0/24"}, allowed: true},
		"the API server, allowed":          {address: "192.0.2.1:6443", flags: []string{"--allow-store-cidrs=192.0.2.0/24"}},
		"loopback, allowed":                {address: "127.0.0.1:6379", flags: []string{"--allow-store-cidrs=127.0.0.0/8"}, allowed: true},
		"loopback as IPv6, allowed":        {address: "[::ffff:127.0.0.1]:6379", flags: []string{"--allow-store-cidrs=127.0.0.0/8"}, allowed: true},
		"loopback, others allowed":         {address: "127.0.0.1:6379", flags: []string{"--allow-store-cidrs=10.0.0.0/8,::1/128"}},
		"a pod, denied":                    {address: "10.1.2.3:6379", flags: []string{"--deny-store-cidrs=10.0.0.0/8"}},
		"a pod, denied and allowed":        {address: "10.1.2.3:6379", flags: []string{"--deny-store-cidrs=0.0.0.0/0,::/0", "--allow-store-cidrs=10.1.0.0/16"}, allowed: true},
		"a pod, denied and others allowed": {address: "10.2.2.3:6379", flags: []string{"--deny-store-cidrs=0.0.0.0/0,::/0", "--allow-store-cidrs=10.1.0.0/16"}},
		"by IPv6, denied, others allowed":  {address: "[fd00::7]:1", flags: []string{"--deny-store-cidrs=0.0.0.0/0,::/0", "--allow-store-cidrs=10.1.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			network := "tcp4"
			if tc.network != "" {
				network = tc.network
			}
			err := withAddresses(t, server, tc.flags...).control(t.Context(), network, tc.address, nil)
			if (err == nil) != tc.allowed {
				t.Errorf("the error is %v, allowed: %t", err, tc.allowed)
			}
			f, ok := errors.AsType[*store.Failure](err)
			if err != nil && (!ok || strings.Contains(f.Why, tc.address)) {
				t.Errorf("%v is not a failure, or shows the address", err)
			}
			if err != nil && !strings.Contains(f.Why, "--allow-store-cidrs") && !strings.Contains(f.Why, "API server") {
				t.Errorf("%q names no cure", f.Why)
			}
		})
	}
}

// TestTheNameOfTheAPIServerIsResolved now and then: its addresses are refused whatever name
// a store has, and stand while the name is not resolved.
func TestTheNameOfTheAPIServerIsResolved(t *testing.T) {
	a := withAddresses(t, "https://kube.example")
	at, asked := time.Unix(1_000_000, 0), 0
	leads, failure := "203.0.113.1", error(nil)
	a.now = func() time.Time { return at }
	a.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		if asked++; host != "kube.example" {
			t.Errorf("%s is resolved", host)
		}
		return []netip.Addr{netip.MustParseAddr(leads)}, failure
	}
	expect := func(address string, allowed bool, askedBy int) {
		t.Helper()
		if err := a.control(t.Context(), "tcp4", address, nil); (err == nil) != allowed || asked != askedBy {
			t.Errorf("%s: %v, asked %d times; want allowed: %t, asked %d times", address, err, asked, allowed, askedBy)
		}
	}
	failure = errors.New("no DNS")
	expect("203.0.113.2:443", false, 1)
	failure = nil
	expect("203.0.113.1:443", false, 2)
	expect("203.0.113.2:443", true, 2)
	at, leads = at.Add(resolvedFor), "203.0.113.2"
	expect("203.0.113.2:443", false, 3)
	at, failure = at.Add(resolvedFor), errors.New("no DNS")
	expect("203.0.113.2:443", false, 4)
	expect("203.0.113.1:443", true, 5)
}

// TestKeySetsAreReadWhereThatIsAllowed: with encryption from where stores may be, and without
// only from addresses that are allowed by name.
func TestKeySetsAreReadWhereThatIsAllowed(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }
	plain, encrypted := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewTLSServer(http.HandlerFunc(serve))
	defer plain.Close()
	defer encrypted.Close()
	const answers = "what its server sends is not a JSON Web Key Set"
	for name, tc := range map[string]struct {
		url, want string
		flags     []string
	}{
		"loopback":                     {encrypted.URL, "the controller may not connect to its address", nil},
		"loopback, allowed":            {encrypted.URL, "the certificate of its server is not valid", []string{"--allow-store-cidrs=127.0.0.0/8"}},
		"without encryption, loopback": {plain.URL, "the controller may not connect to its address", nil},
		"without encryption, allowed":  {plain.URL, answers, []string{"--allow-store-cidrs=127.0.0.0/8"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withAddresses(t, "https://192.0.2.1:6443", tc.flags...).keySets().Fetch(t.Context(), tc.url)
			if err == nil || !strings.Contains(store.Plain(err).Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
	a := withAddresses(t, "https://192.0.2.1:6443", "--allow-store-cidrs=10.1.0.0/16")
	for address, allowed := range map[string]bool{"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "10.2.2.3:80": false, "203.0.113.7:80": false, "192.0.2.1:6443": false} {
		err := a.plain(t.Context(), "tcp4", address, nil)
		if f, ok := errors.AsType[*store.Failure](err); (err == nil) != allowed || err != nil && (!ok || strings.Contains(f.Why, address)) {
			t.Errorf("%s without encryption: %v, allowed: %t", address, err, allowed)
		}
	}
}

// TestRedisOverHTTPIsAskedWhereThatIsAllowed, like key sets.
func TestRedisOverHTTPIsAskedWhereThatIsAllowed(t *testing.T) {
	serve := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }
	plain, encrypted := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewTLSServer(http.HandlerFunc(serve))
	defer plain.Close()
	defer encrypted.Close()
	const refused, allowed = "the controller may not connect to its address", "--allow-store-cidrs=127.0.0.0/8"
	for name, tc := range map[string]struct {
		url, want string
		flags     []string
	}{
		"loopback":                     {encrypted.URL, refused, nil},
		"loopback by a name":           {strings.Replace(encrypted.URL, "127.0.0.1", "localhost", 1), refused, nil},
		"loopback, allowed":            {encrypted.URL, "from an authority that is not trusted", []string{allowed}},
		"without encryption, loopback": {plain.URL, refused, nil},
		"without encryption, allowed":  {plain.URL, "it does not answer as Redis over HTTP does", []string{allowed}},
	} {
		t.Run(name, func(t *testing.T) {
			stores := storeprobe.New(withAddresses(t, "https://192.0.2.1:6443", tc.flags...).stores().Open)
			of := policy.Store{Type: policy.RedisStore, REST: true, Address: tc.url, TLS: strings.HasPrefix(tc.url, "https"), Secret: "shop/redis"}
			_, err := stores.Probe(t.Context(), of, map[string][]byte{policy.SecretToken: []byte("t")})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPortsOfTheAPIServer(t *testing.T) {
	for server, want := range map[string]uint16{"https://a": 443, "http://a": 80, "https://a:6443": 6443, "a:7443": 7443, "https://[::1]:1": 1} {
		if a := withAddresses(t, server); a.port != want {
			t.Errorf("%s has port %d, want %d", server, a.port, want)
		}
	}
}
