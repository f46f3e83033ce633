package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

// FuzzHost checks that every spelling of a host that means the same is the same host.
func FuzzHost(f *testing.F) {
	f.Add("shop.Example.com:80")
	f.Add("[fd00::1]:443")
	f.Add("[a.]")
	f.Add("::1%eth0.")
	f.Fuzz(func(t *testing.T, host string) {
		key := limitOf(t, keyed(policy.Skip, policy.KeyPart{Type: policy.HostKey}))
		named := func(host string) string {
			r := request("GET /")
			r.Host = host
			name, _, _ := key.Value(view(r))
			return name
		}
		name := named(host)
		if len(host) > 100 { // a longer one is counted by a digest
			return
		}
		if again := named(name); again != name {
			t.Errorf("%q is %q, which is %q", host, name, again)
		}
		if name != "" && !strings.ContainsAny(host, ":[]") && (named(host+":8080") != name || named(host+".") != name || named(strings.ToUpper(host)) != named(strings.ToLower(host))) {
			t.Errorf("%q is another host with a port, a dot or in upper case", host)
		}
		if err := policy.ValidateHost(name); err == nil && !strings.HasPrefix(name, "*") && !limitOf(t, matching(policy.Match{Hosts: []string{name}})).Matches(at(host)) {
			t.Errorf("%q does not match %q", name, host)
		}
	})
}
