package policy_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func TestCredentialsAreAllThatAStoreReads(t *testing.T) {
	data := map[string][]byte{
		"username": {1}, "password": {2}, "sentinel-username": {3}, "sentinel-password": {4},
		"ca.crt": {5}, "tls.crt": {6}, "tls.key": {7}, "api-key": {8}, "Password": {9},
	}
	got := slices.Sorted(maps.Keys(policy.Credentials(data)))
	want := []string{"ca.crt", "password", "sentinel-password", "sentinel-username", "tls.crt", "tls.key", "username"}
	if !slices.Equal(got, want) || len(data) != 9 {
		t.Errorf("%q of %d are sent, want %q of 9", got, len(data), want)
	}
	if policy.Credentials(nil) != nil {
		t.Error("a secret without data has some")
	}
}
