package podauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Identity is the pod that a token is bound to.
type Identity struct {
	Namespace, Pod, PodUID string
}

// ErrUnauthenticated is what an Authenticator's error wraps when the token is not valid. Any
// other error means that this could not be found out.
var ErrUnauthenticated = errors.New("the token is not accepted")

// ErrCrowded is what an Authenticator's error wraps when too many tokens claim to be of
// the same pod. Others are not held up.
var ErrCrowded = errors.New("too many tokens of one pod at a time")

// An Authenticator says whose token it is. It may block until ctx is done.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (Identity, error)
}

const (
	maxToken = 16 << 10 // bytes; those of a cluster have about one thousand
	// clockSkew is how far this clock may be ahead of the API server's. A token that
	// ended no longer ago is left to the API server's judgement.
	clockSkew = 5 * time.Minute
)

// claims are what a token that a kubelet projects says of itself.
type claims struct {
	Audience audiences `json:"aud"`
	Expires  float64   `json:"exp"` // in seconds since 1970
	Bound    struct {
		Namespace string `json:"namespace"`
		Pod       struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"pod"`
	} `json:"kubernetes.io"`
}

// identity returns the pod that the token is bound to; parts are empty that it lacks.
func (c claims) identity() Identity {
	return Identity{Namespace: c.Bound.Namespace, Pod: c.Bound.Pod.Name, PodUID: c.Bound.Pod.UID}
}

// audiences are one string or several, as RFC 7519, section 4.1.3, has it.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) {
		*a = make(audiences, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// claimed returns the pod that a token says it is bound to. That is not proved: it only
// spares reviews of tokens that cannot be accepted. The error wraps ErrUnauthenticated.
func claimed(token string, now time.Time) (Identity, error) {
	refuse := func(format string, args ...any) (Identity, error) {
		return Identity{}, fmt.Errorf("%w: %s", ErrUnauthenticated, fmt.Sprintf(format, args...))
	}
	if len(token) > maxToken {
		return refuse("it has %d bytes, at most %d are read", len(token), maxToken)
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 {
		return refuse("it is not a JSON Web Token")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return refuse("its claims are not encoded as those of a JSON Web Token")
	}
	var c claims
	if err := json.Unmarshal(body, &c); err != nil {
		return refuse("its claims cannot be read")
	}
	id := c.identity()
	switch {
	case !slices.Contains(c.Audience, Audience):
		return refuse("it is not for the audience %s", Audience)
	case c.Expires < float64(now.Add(-clockSkew).Unix()):
		return refuse("it has expired")
	case id.Namespace == "" || id.Pod == "" || id.PodUID == "":
		return refuse("it is not bound to a pod")
	}
	return id, nil
}
