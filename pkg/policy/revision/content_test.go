package revision_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/policy/revision"
)

// TestContentsThatDifferHaveOtherDigests: in the cluster, in an entry, in how many there are, and in where
// one is.
func TestContentsThatDifferHaveOtherDigests(t *testing.T) {
	seen := map[string]string{}
	for _, data := range []string{
		`{"cluster":"a"}`,
		`{"cluster":"b"}`,
		`{"cluster":"a","policies":[{"namespace":"n","name":"p"}]}`,
		`{"cluster":"a","policies":[{"namespace":"n","name":"p","generation":1}]}`,
		`{"cluster":"a","policies":[{"namespace":"n","name":"p"},{"namespace":"n","name":"q"}]}`,
		`{"cluster":"a","pool":{"namespace":"n","name":"p"}}`,
		`{"cluster":"a","pools":[{"namespace":"n","name":"p"}]}`,
	} {
		c, err := revision.ContentOf([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		digest := fmt.Sprintf("%x", c.Digest())
		if other, found := seen[digest]; found {
			t.Errorf("%s and %s have the same digest", other, data)
		}
		seen[digest] = data
	}
}

// TestNothingElseHasAContent: entries without a name, two of a name, and more than entries.
func TestNothingElseHasAContent(t *testing.T) {
	for _, data := range []string{
		``, `{"cluster":"a","policies":[7]}`, `{"cluster":"a","more":1}`,
		`{"cluster":"a","policies":[{"namespace":"n","name":"p"},{"namespace":"n","name":"p","generation":1}]}`,
	} {
		if _, err := revision.ContentOf([]byte(data)); err == nil {
			t.Errorf("%q has a content", data)
		}
	}
}
