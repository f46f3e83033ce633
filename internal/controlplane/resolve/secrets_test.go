package resolve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/pkg/policy"
)

// An apiServer holds one Secret and counts how often it is asked.
type apiServer struct {
	client.Reader
	version string
	err     error
	asked   int
}

func (s *apiServer) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.asked++
	if s.err != nil {
		return s.err
	}
	found := into.(*corev1.Secret)
	found.Namespace, found.Name, found.ResourceVersion = name.Namespace, name.Name, s.version
	found.Data = map[string][]byte{"password": []byte("of " + name.String() + " " + s.version)}
	return nil
}

var (
	secrets   = schema.GroupResource{Resource: "secrets"}
	forbidden = apierrors.NewForbidden(secrets, "db", errors.New("no"))
	notFound  = apierrors.NewNotFound(secrets, "db")
	onRedis   = policy.Store{Type: policy.RedisStore, Address: "redis:6379", Secret: "shop/db"}
)

func TestSecretsAreRememberedForAMoment(t *testing.T) {
	api := &apiServer{version: "7"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	s := newSecrets(api, clock)
	read := func(of policy.Store, wantVersion string, wantAsked int) {
		t.Helper()
		data, version, err := s.Data(t.Context(), of)
		if err != nil || version != wantVersion || string(data["password"]) != "of "+of.Secret+" "+wantVersion {
			t.Errorf("got %s in version %q, error %v; want version %s", data["password"], version, err, wantVersion)
		}
		if api.asked != wantAsked {
			t.Errorf("the API server was asked %d times, want %d", api.asked, wantAsked)
		}
	}
	read(onRedis, "7", 1)
	api.version = "8"
	clock.SetTime(clock.Now().Add(secretFreshFor - 1))
	read(onRedis, "7", 1)
	clock.SetTime(clock.Now().Add(1))
	read(onRedis, "8", 2)

	other := onRedis
	other.Secret = "bank/db"
	read(other, "8", 3)
	clock.SetTime(clock.Now().Add(secretKeptFor))
	read(other, "8", 4)
	if len(s.byName) != 1 {
		t.Errorf("%d secrets are kept, want the one that was asked for", len(s.byName))
	}

	if data, version, err := s.Data(t.Context(), policy.Store{Type: policy.ControllerStore}); data != nil || version != "" || err != nil {
		t.Errorf("a store without a secret has %v, %q, %v", data, version, err)
	}
}

func TestASecretThatCannotBeReadNamesTheCure(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"forbidden": {forbidden, "secret shop/db; allow it to read that one: " +
			"kubectl create role weir-reads-db --namespace shop --verb get --resource secrets --resource-name db && " +
			"kubectl create rolebinding weir-reads-db --namespace shop --role weir-reads-db --serviceaccount weir-system:weir-controller"},
		"missing":        {notFound, "there is no secret shop/db: create it, or name another in secretRef"},
		"anything else":  {errors.New("timeout"), "reading secret shop/db: timeout"},
		"a wrapped lack": {errors.Join(notFound), "create it"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &apiServer{err: tc.err}
			clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
			s := newSecrets(api, clock)
			for range 2 {
				if data, version, err := s.Data(t.Context(), onRedis); data != nil || version != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, %q, %v; want an error that says %q", data, version, err, tc.want)
				}
			}
			if api.asked != 1 {
				t.Errorf("asked %d times at once, want once", api.asked)
			}
			api.version, api.err = "7", nil
			clock.SetTime(clock.Now().Add(secretFreshFor))
			if _, version, err := s.Data(t.Context(), onRedis); version != "7" || err != nil {
				t.Errorf("after the cure: %q, %v", version, err)
			}
		})
	}
}

// TestCredentialsOutliveTheAPIServer but not that they are withdrawn.
func TestCredentialsOutliveTheAPIServer(t *testing.T) {
	api := &apiServer{version: "7"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	s := newSecrets(api, clock)
	for _, step := range []struct {
		err  error
		want string
	}{{nil, "7"}, {errors.New("timeout"), "7"}, {errors.New("timeout"), "7"}, {notFound, ""}, {nil, "7"}, {forbidden, ""}} {
		api.err = step.err
		data, version, err := s.Data(t.Context(), onRedis)
		if version != step.want || (data["password"] != nil) != (step.want != "") || (err == nil) != (step.want != "") {
			t.Errorf("while the API server says %v: %s of version %q, error %v; want version %q", step.err, data, version, err, step.want)
		}
		clock.SetTime(clock.Now().Add(secretFreshFor))
	}
}
