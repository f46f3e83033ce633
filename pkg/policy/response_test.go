package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func responding(r policy.Response) policy.Snapshot {
	return valid(func(p *policy.Policy) { p.Response = r })
}

// TestAPolicyThatSaysNothingRespondsByDefault checks both what is sent to sidecars that
// know of responses and what is read by those that do not.
func TestAPolicyThatSaysNothingRespondsByDefault(t *testing.T) {
	for name, s := range map[string]policy.Snapshot{
		"nothing":     responding(policy.Response{}),
		"the default": responding(policy.DefaultResponse()),
	} {
		t.Run(name, func(t *testing.T) {
			data, _, err := policy.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "response") {
				t.Errorf("it is encoded as %s", data)
			}
			decoded, err := policy.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			set, err := policy.Compile(decoded)
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Snapshot.Policies[0].Response; set.Snapshot.Cluster != "test" || got != policy.DefaultResponse() {
				t.Errorf("the set shows the response %+v of cluster %q", got, set.Snapshot.Cluster)
			}
			if got := set.Limits[0].Policy.Response; got != policy.DefaultResponse() {
				t.Errorf("it responds by %+v", got)
			}
			if decoded.Policies[0].Response != (policy.Response{}) {
				t.Error("compiling changed what was decoded")
			}
		})
	}
}

func TestAResponseOfItsOwnIsKept(t *testing.T) {
	silent := policy.Response{Quota: policy.OnRejection, StatusCode: 503, Body: policy.NoBody}
	set, err := policy.Compile(responding(silent))
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Limits[0].Policy.Response; got != silent {
		t.Errorf("got %+v", got)
	}
}
