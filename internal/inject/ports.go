package inject

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	firstInboundPort = 15006
	checkPort        = 15010
	rlsPort          = 15011
	firstAdminPort   = 15020

	maxInboundPorts = 4
	maxPortName     = 15 // characters, set by Kubernetes
)

// choosePorts returns the app's ports to stand in front of, without listeners.
func choosePorts(spec *corev1.PodSpec, capture Capture, a *annotated) []Port {
	ports, listed := listedPorts(spec, a)
	if skip := skipped(spec, a); listed {
		warnOfContradiction(ports, skip, a)
	} else {
		ports = declaredHTTP(spec, skip)
	}
	if capture == CaptureRedirect {
		ports = byApp(ports)
	}
	if len(ports) > maxInboundPorts {
		a.warn("the pod declares %d HTTP ports and the sidecar takes the first %d, without %s: choose them with %s",
			len(ports), maxInboundPorts, ports[maxInboundPorts].Name, v1alpha1.InboundPortsAnnotation)
		ports = ports[:maxInboundPorts]
	}
	return ports
}

// listedPorts resolves the annotation that lists ports. It counts as a whole: one
// wrong entry and the default selection is used.
func listedPorts(spec *corev1.PodSpec, a *annotated) ([]Port, bool) {
	key := v1alpha1.InboundPortsAnnotation
	value, ok := a.lookup(key)
	if !ok {
		return nil, false
	}
	ports, wrong := resolveAll(spec, value)
	if wrong != "" {
		a.warn("%s is %q: %s; the declared HTTP ports are used", key, value, wrong)
		return nil, false
	}
	if len(ports) > maxInboundPorts {
		a.warn("%s is %q: list up to %d ports; the declared HTTP ports are used", key, value, maxInboundPorts)
		return nil, false
	}
	return ports, true
}

// resolveAll finds the ports that a list means, each once, or says of every wrong
// entry what is wrong.
func resolveAll(spec *corev1.PodSpec, list string) (ports []Port, wrong string) {
	var mistakes []string
	for entry := range strings.SplitSeq(list, ",") {
		port, err := resolve(spec, strings.TrimSpace(entry))
		switch {
		case err != nil:
			mistakes = append(mistakes, err.Error())
		case !slices.Contains(ports, port):
			ports = append(ports, port)
		}
	}
	return ports, strings.Join(slices.Compact(mistakes), ", ")
}

// resolve finds the port that an entry of the annotation means.
func resolve(spec *corev1.PodSpec, entry string) (Port, error) {
	if number, err := strconv.ParseInt(entry, 10, 32); err == nil {
		if number < 1 || number > 65535 {
			return Port{}, fmt.Errorf("%d is not a port number", number)
		}
		return byNumber(spec, int32(number)), nil
	}
	if port, ok := byName(spec, entry); ok {
		return port, nil
	}
	return Port{}, fmt.Errorf("no container declares a TCP port named %q", entry)
}

// byName finds the port that Services resolve the name to.
func byName(spec *corev1.PodSpec, name string) (Port, bool) {
	for c := range serving(spec) {
		for i := range c.Ports {
			if p := &c.Ports[i]; isTCP(p) && p.Name == name && name != "" {
				return Port{Name: name, App: p.ContainerPort}, true
			}
		}
	}
	return Port{}, false
}

// byNumber finds the port under the name by which Services reach it. If none
// does, the sidecar's port gets a name of its own that they can target.
func byNumber(spec *corev1.PodSpec, number int32) Port {
	for c := range serving(spec) {
		for i := range c.Ports {
			if port, ok := byName(spec, c.Ports[i].Name); ok && port.App == number {
				return port
			}
		}
	}
	return Port{Name: madeUpName(number), App: number}
}

func madeUpName(number int32) string { return fmt.Sprintf("weir-%d", number) }

// skipped resolves the annotation that lists ports to leave alone.
func skipped(spec *corev1.PodSpec, a *annotated) []Port {
	key := v1alpha1.SkipInboundPortsAnnotation
	value, ok := a.lookup(key)
	if !ok {
		return nil
	}
	ports, wrong := resolveAll(spec, value)
	if wrong != "" {
		a.warn("%s is %q: %s; no port is skipped", key, value, wrong)
		return nil
	}
	return ports
}

// warnOfContradiction names the ports that are both listed and to be left alone.
func warnOfContradiction(listed, skip []Port, a *annotated) {
	for _, p := range listed {
		if slices.ContainsFunc(skip, func(q Port) bool { return q.App == p.App }) {
			a.warn("%s lists port %d and %s leaves it out: it is captured; take it out of one of them",
				v1alpha1.InboundPortsAnnotation, p.App, v1alpha1.SkipInboundPortsAnnotation)
		}
	}
}

// declaredHTTP returns the ports whose names say HTTP. Only the first of several with
// one name counts: it is the one that Services resolve the name to.
func declaredHTTP(spec *corev1.PodSpec, skip []Port) []Port {
	var ports []Port
	seen := map[string]bool{}
	for c := range serving(spec) {
		if isMesh(c) {
			continue
		}
		for i := range c.Ports {
			p := &c.Ports[i]
			if !isTCP(p) || !saysHTTP(p.Name) || seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			if !slices.ContainsFunc(skip, func(q Port) bool { return q.App == p.ContainerPort }) {
				ports = append(ports, Port{Name: p.Name, App: p.ContainerPort})
			}
		}
	}
	return ports
}

// byApp keeps one of the ports with one number: connections are led by that alone.
// The name that is none of the pod's goes, as no Service has to use it.
func byApp(ports []Port) []Port {
	var unique []Port
	for _, p := range ports {
		if slices.ContainsFunc(unique, func(q Port) bool { return q.App == p.App }) {
			continue
		}
		if p.Name == madeUpName(p.App) {
			p.Name = ""
		}
		unique = append(unique, p)
	}
	return unique
}

// saysHTTP reports whether a port of this name speaks HTTP in clear, for clients. Where
// TLS ends in the app the sidecar could not read what passes. Requests of collectors
// and operators to a port of their own must neither spend a limit nor be refused.
func saysHTTP(name string) bool {
	switch {
	case strings.HasPrefix(name, "https"), strings.HasPrefix(name, "grpcs"):
		return false
	case name == "http-metrics", name == "http-admin":
		return false
	case name == "web", name == "h2c":
		return true
	}
	return strings.HasPrefix(name, "http") || strings.HasPrefix(name, "grpc")
}

// assign gives each port the next listener that is free in the pod and returns
// the ports and the admin port. Another project's sidecar may hold the usual ones.
func assign(spec *corev1.PodSpec, ports []Port) (_ []Port, admin int32) {
	inUse := func(number int32) bool {
		return number == checkPort || number == rlsPort || number == admin || ownerOfPort(spec, number) != "" ||
			slices.ContainsFunc(ports, func(p Port) bool { return p.App == number || p.Listen == number })
	}
	next := func(number int32) int32 {
		for inUse(number) {
			number++
		}
		return number
	}
	admin = next(firstAdminPort)
	for i := range ports {
		ports[i].Listen = next(firstInboundPort)
	}
	return ports, admin
}
