package policy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func byClient(ip policy.ClientIP) func(*policy.Policy) {
	return func(p *policy.Policy) {
		keyed(policy.Reject, policy.KeyPart{Type: policy.ClientIPKey})(p)
		p.ClientIP = ip
	}
}

func from(peer string, forwarded ...string) *policy.Request {
	r := request("GET /")
	r.RemoteAddr = peer
	if len(forwarded) > 0 {
		r.Header["X-Forwarded-For"] = forwarded
	}
	return view(r)
}

func TestClientAddress(t *testing.T) {
	none := policy.ClientIP{}
	hops := func(n int) policy.ClientIP { return policy.ClientIP{TrustedHops: n} }
	nets := policy.ClientIP{TrustedCIDRs: []string{"10.0.0.0/8", "fd00::/8"}}
	for name, tc := range map[string]struct {
		trusted   policy.ClientIP
		peer      string
		forwarded []string
		want      string
	}{
		"by default only the peer counts":               {none, "192.0.2.1:99", []string{"203.0.113.9"}, "192.0.2.1"},
		"one hop: the last entry":                       {hops(1), "10.0.0.1:99", []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		"two hops: the last but one":                    {hops(2), "10.0.0.1:99", []string{"1.1.1.1, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		"hops over several lines":                       {hops(2), "10.0.0.1:99", []string{"1.1.1.1,203.0.113.9", "10.0.0.2"}, "203.0.113.9"},
		"fewer entries than hops: the peer":             {hops(2), "192.0.2.1:99", []string{"203.0.113.9"}, "192.0.2.1"},
		"no header: the peer":                           {hops(1), "192.0.2.1:99", nil, "192.0.2.1"},
		"an entry that cannot be read: the peer":        {hops(1), "192.0.2.1:99", []string{"203.0.113.9, unknown"}, "192.0.2.1"},
		"an unread entry on the way: the peer":          {hops(2), "192.0.2.1:99", []string{"203.0.113.9, ???"}, "192.0.2.1"},
		"an empty entry: the peer":                      {hops(1), "192.0.2.1:99", []string{"203.0.113.9,"}, "192.0.2.1"},
		"networks: the first that is not trusted":       {nets, "10.0.0.1:99", []string{"1.1.1.1, 203.0.113.9, 10.9.9.9"}, "203.0.113.9"},
		"networks: a peer that is not trusted":          {nets, "192.0.2.1:99", []string{"203.0.113.9"}, "192.0.2.1"},
		"networks: all trusted, the outermost":          {nets, "10.0.0.1:99", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"networks: an entry that cannot be read":        {nets, "10.0.0.1:99", []string{"203.0.113.9, nobody"}, "10.0.0.1"},
		"an entry with a port":                          {hops(1), "10.0.0.1:99", []string{"203.0.113.9:4711"}, "203.0.113.9"},
		"an IPv6 client counts by its /64":              {hops(1), "10.0.0.1:99", []string{"2001:db8:1:2:aaaa::7"}, "2001:db8:1:2::/64"},
		"an IPv6 entry in brackets with a port":         {hops(1), "10.0.0.1:99", []string{"[2001:db8:1:2::7]:443"}, "2001:db8:1:2::/64"},
		"an IPv6 entry in brackets":                     {hops(1), "10.0.0.1:99", []string{"[2001:db8:1:2::7]"}, "2001:db8:1:2::/64"},
		"an IPv4 address in IPv6 is the IPv4 one":       {none, "[::ffff:192.0.2.1]:99", nil, "192.0.2.1"},
		"a mapped proxy is trusted as what it is":       {nets, "[::ffff:10.0.0.1]:99", []string{"203.0.113.9"}, "203.0.113.9"},
		"a zone does not open another counter":          {none, "[fe80::1%eth0]:99", nil, "fe80::/64"},
		"the header's name in lower case is not a name": {none, "192.0.2.1:99", nil, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, outcome, _ := limitOf(t, byClient(tc.trusted)).Value(from(tc.peer, tc.forwarded...))
			if got != tc.want || outcome != policy.Counted {
				t.Errorf("got %q, %v; want %q", got, outcome, tc.want)
			}
		})
	}
}

func TestAPeerWithoutAnAddressHasNoKey(t *testing.T) {
	if _, outcome, _ := limitOf(t, byClient(policy.ClientIP{})).Value(from("@")); outcome != policy.Rejected {
		t.Errorf("got %v", outcome)
	}
}

// FuzzForwardedFor checks that whatever a client puts into X-Forwarded-For, in
// one line or several, it is counted under the address that the trusted proxy
// appended: rotating the header never yields a second bucket.
func FuzzForwardedFor(f *testing.F) {
	f.Add("1.2.3.4", "5.6.7.8", true)
	f.Add("", ",", false)
	f.Add("10.0.0.9, [::1", "::ffff:10.0.0.1", true)
	f.Add("\x00", "fd00::1", false)
	trusted := map[string]policy.ClientIP{
		"hops":     {TrustedHops: 1},
		"networks": {TrustedCIDRs: []string{"10.0.0.0/8", "fd00::/8"}},
	}
	f.Fuzz(func(t *testing.T, first, second string, sameLine bool) {
		if strings.ContainsAny(first+second, "\r\n") {
			return // no header holds these
		}
		const client = "203.0.113.9"
		lines := []string{first, second + ", " + client}
		if !sameLine {
			lines = []string{first, second, client}
		}
		for name, ip := range trusted {
			got, outcome, _ := limitOf(t, byClient(ip)).Value(from("10.0.0.1:99", lines...))
			if got != client || outcome != policy.Counted {
				t.Errorf("%s: %q counts as %q", name, lines, got)
			}
		}
		// Without trust in anybody the header is not even read.
		r := from("192.0.2.1:99", lines...)
		if got, _, _ := limitOf(t, byClient(policy.ClientIP{})).Value(r); got != "192.0.2.1" {
			t.Errorf("the peer counts as %q", got)
		}
		// Nor is it from a peer outside the trusted networks.
		if got, _, _ := limitOf(t, byClient(trusted["networks"])).Value(r); got != "192.0.2.1" {
			t.Errorf("an untrusted peer counts as %q", got)
		}
	})
}

func TestRotatingOtherHeadersOpensNoBucket(t *testing.T) {
	l := limitOf(t, byClient(policy.ClientIP{TrustedHops: 1}))
	for _, name := range []string{"X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "Client-Ip"} {
		r := request("GET /")
		r.RemoteAddr = "10.0.0.1:99"
		r.Header = http.Header{name: {"198.51.100.7"}, "X-Forwarded-For": {"203.0.113.9"}}
		if got, _, _ := l.Value(view(r)); got != "203.0.113.9" {
			t.Errorf("%s: counted as %q", name, got)
		}
	}
}

func byIdentity(ip policy.ClientIP) func(*policy.Policy) {
	return func(p *policy.Policy) {
		keyed(policy.Reject, policy.KeyPart{Type: policy.PeerIdentityKey})(p)
		p.ClientIP = ip
	}
}

// certified is a request that a peer forwards, with lines of X-Forwarded-Client-Cert.
func certified(peer string, lines ...string) *policy.Request {
	r := request("GET /")
	r.RemoteAddr = peer
	if len(lines) > 0 {
		r.Header["X-Forwarded-Client-Cert"] = lines
	}
	return view(r)
}

var mesh = policy.ClientIP{TrustedCIDRs: []string{"127.0.0.6/32"}}

func TestPeerIdentity(t *testing.T) {
	const envoy, web = "127.0.0.6:99", "spiffe://cluster.local/ns/shop/sa/web"
	for name, tc := range map[string]struct {
		trusted policy.ClientIP
		peer    string
		lines   []string
		want    string // empty: missing
	}{
		"as Envoy writes it":                {mesh, envoy, []string{`By=spiffe://cluster.local/ns/shop/sa/api;Hash=ab12;Subject="";URI=` + web}, web},
		"a subject with separators":         {mesh, envoy, []string{`Hash=ab12;URI=` + web + `;Subject="CN=\"a,b;URI=spiffe://evil\",O=x"`}, web},
		"a value in quotes":                 {mesh, envoy, []string{`URI="` + web + `"`}, web},
		"a quote and a backslash in quotes": {mesh, envoy, []string{`URI="spiffe://a\\\"b"`}, `spiffe://a\"b`},
		"in another case":                   {mesh, envoy, []string{`uri=` + web}, web},
		"the last of several elements":      {mesh, envoy, []string{`URI=spiffe://evil,By=x;URI=` + web}, web},
		"the last of several lines":         {mesh, envoy, []string{`URI=spiffe://evil`, `URI=` + web}, web},
		"an element before it that is open": {mesh, envoy, []string{`Subject="CN=evil,By=x;URI=` + web}, web},
		"a hop in place of networks":        {policy.ClientIP{TrustedHops: 1}, "10.0.0.1:99", []string{`URI=` + web}, web},
		"from somebody else":                {mesh, "10.0.0.1:99", []string{`URI=` + web}, ""},
		"from a peer without an address":    {mesh, "@", []string{`URI=` + web}, ""},
		"no header":                         {mesh, envoy, nil, ""},
		"an element without a URI":          {mesh, envoy, []string{`URI=spiffe://evil,By=x;Hash=ab12`}, ""},
		"several URIs":                      {mesh, envoy, []string{`URI=spiffe://a;URI=` + web}, ""},
		"a name that ends in one":           {mesh, envoy, []string{`XURI=` + web}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, outcome, _ := limitOf(t, byIdentity(tc.trusted)).Value(certified(tc.peer, tc.lines...))
			if got != tc.want || (outcome == policy.Rejected) != (tc.want == "") {
				t.Errorf("got %q, %v; want %q", got, outcome, tc.want)
			}
		})
	}
}

// FuzzClientCert checks that whatever a client puts into X-Forwarded-Client-Cert, it is counted
// under the identity in the element that the trusted proxy appends.
func FuzzClientCert(f *testing.F) {
	f.Add(`URI=spiffe://evil`, true)
	f.Add(`Subject="`, true)
	f.Add(`Subject="\`, false)
	f.Add(`"URI=spiffe://evil,`, true)
	f.Fuzz(func(t *testing.T, before string, sameLine bool) {
		if strings.ContainsAny(before, "\r\n") {
			return // no header holds these
		}
		const web = "spiffe://cluster.local/ns/shop/sa/web"
		const element = `By=spiffe://x;Hash=ab12;Subject="CN=\"a,b\",O=x";URI=` + web
		lines := []string{before + "," + element}
		if !sameLine {
			lines = []string{before, element}
		}
		got, outcome, _ := limitOf(t, byIdentity(mesh)).Value(certified("127.0.0.6:99", lines...))
		if got != web || outcome != policy.Counted {
			t.Errorf("%q counts as %q, %v", lines, got, outcome)
		}
		if got, _, _ := limitOf(t, byIdentity(mesh)).Value(certified("10.0.0.1:99", lines...)); got != "" {
			t.Errorf("from a peer that is not trusted %q counts as %q", lines, got)
		}
	})
}
