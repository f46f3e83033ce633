package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The kinds of questions that the kubelet asks a container.
const (
	Startup   = "startup"
	Readiness = "readiness"
	Liveness  = "liveness"
	PostStart = "postStart"
	PreStop   = "preStop"
)

// A Target is one question that the kubelet puts to a container: exactly one of
// HTTP, TCP and GRPC. Its JSON form is the value of the flag --probe.
type Target struct {
	Container string `json:"container"`
	Kind      string `json:"kind"`

	// TimeoutSeconds bounds the question, besides the patience of the caller; 0 does
	// not bound it, as the kubelet does with hooks.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	HTTP *HTTP `json:"http,omitempty"`
	TCP  *TCP  `json:"tcp,omitempty"`
	GRPC *GRPC `json:"grpc,omitempty"`
}

// HTTP is a GET. A status from 200 to 399 is a success.
type HTTP struct {
	TLS     bool     `json:"tls,omitempty"` // the certificate is not looked at
	Port    int32    `json:"port"`
	Path    string   `json:"path,omitempty"` // with its query
	Headers []Header `json:"headers,omitempty"`
}

// A Header may come several times. One named Host is the host that is asked for.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// TCP is a connection that is opened and closed.
type TCP struct {
	Port int32 `json:"port"`
}

// GRPC is a Check of grpc.health.v1. SERVING is a success.
type GRPC struct {
	Port    int32  `json:"port"`
	Service string `json:"service,omitempty"` // empty: the server as a whole
}

const prefix = "/probe/"

// Path is where the admin port answers callers with the token for the target.
func (t *Target) Path(token string) string { return prefix + token + "/" + t.name() }

func (t *Target) name() string { return t.Container + "/" + t.Kind }

// Parse reads a target from its JSON form. The error names the field and the cure.
func Parse(text string) (Target, error) {
	var t Target
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return Target{}, fmt.Errorf("write a JSON object: %w", err)
	}
	return t, t.validate()
}

func (t *Target) validate() error {
	var errs []error
	if t.Container == "" {
		errs = append(errs, errors.New("container is empty: name the container that is asked"))
	}
	switch t.Kind {
	case Startup, Readiness, Liveness, PostStart, PreStop:
	default:
		errs = append(errs, fmt.Errorf("kind is %q: use startup, readiness, liveness, postStart or preStop", t.Kind))
	}
	if t.TimeoutSeconds < 0 {
		errs = append(errs, fmt.Errorf("timeoutSeconds is %d: use 0 or more", t.TimeoutSeconds))
	}
	var ports []int32
	if t.HTTP != nil {
		ports = append(ports, t.HTTP.Port)
	}
	if t.TCP != nil {
		ports = append(ports, t.TCP.Port)
	}
	if t.GRPC != nil {
		ports = append(ports, t.GRPC.Port)
	}
	if len(ports) != 1 {
		return errors.Join(append(errs, fmt.Errorf("%d of http, tcp and grpc are set: set one", len(ports)))...)
	}
	if ports[0] < 1 || ports[0] > 65535 {
		errs = append(errs, fmt.Errorf("port is %d: use 1 to 65535", ports[0]))
	}
	return errors.Join(errs...)
}

func (t *Target) timeout() time.Duration { return time.Duration(t.TimeoutSeconds) * time.Second }
