package replay

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Names of what is read, in the logs of Envoy Gateway, Istio and Envoy's own examples, in
// the order in which they are looked for.
var (
	timeNames   = []string{"start_time", "startTime", "timestamp", "time"}
	methodNames = []string{"method", ":method", "request_method"}
	targetNames = []string{"x-envoy-origin-path", "path", ":path", "request_path"}
	hostNames   = []string{":authority", "authority", "host"}
	clientNames = []string{"downstream_remote_address", "client_ip"}
	taken       = slices.Concat(timeNames, methodNames, targetNames, hostNames, clientNames)
)

var errEnvoy = errors.New("it lacks one of start_time, method and path")

// parseEnvoy reads a JSON object. Each other field with a text is taken for the header of that
// name, with a dash for an underscore: x_tenant and x-tenant are the header X-Tenant.
func parseEnvoy(line string) (*Entry, error) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return nil, err
	}
	first := func(names []string) string {
		for _, name := range names {
			if text, ok := fields[name].(string); ok && text != "" && text != "-" {
				return text
			}
		}
		return ""
	}
	at, err := time.Parse(time.RFC3339Nano, first(timeNames))
	if err != nil {
		return nil, errEnvoy
	}
	e := &Entry{
		Time: at, Method: first(methodNames), Target: first(targetNames), Host: first(hostNames),
		Client: addressOf(first(clientNames)), Header: http.Header{},
	}
	if e.Method == "" || e.Target == "" {
		return nil, errEnvoy
	}
	for _, name := range taken {
		delete(fields, name)
	}
	for name, value := range fields {
		if text, ok := value.(string); ok && text != "" && text != "-" {
			e.Header.Set(strings.ReplaceAll(name, "_", "-"), text)
		}
	}
	return e, nil
}
