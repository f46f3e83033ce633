package inject

import (
	"cmp"
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
		a.warn("%s is %s: %s; the declared HTTP ports are used", key, quote(value), wrong)
		return nil, false
	}
	if len(ports) > maxInboundPorts {
		a.warn("%s is %s: list up to %d ports; the declared HTTP ports are used", key, quote(value), maxInboundPorts)
		return nil, false
	}
	return ports, true
}

// resolveAll finds the ports that a list means, each once, or says of every wrong
// entry what is wrong.
func resolveAll(spec *corev1.PodSpec, list string) (ports []Port, wrong string) {
	if n := strings.Count(list, ",") + 1; n > maxEntries {
		return nil, fmt.Sprintf("it has %d entries, and may have up to %d", n, maxEntries)
	}
	names := namesOf(spec)
	var mistakes []string
	for entry := range strings.SplitSeq(list, ",") {
		port, err := names.resolve(strings.TrimSpace(entry))
		switch {
		case err != nil:
			mistakes = append(mistakes, err.Error())
		case !slices.Contains(ports, port):
			ports = append(ports, port)
		}
	}
	return ports, strings.Join(slices.Compact(mistakes), ", ")
}

// portNames are the names by which Services reach the TCP ports of a pod.
type portNames struct {
	number map[string]int32 // of the port that Services resolve the name to
	name   map[int32]string // the first of those that are resolved to the number
}

func namesOf(spec *corev1.PodSpec) portNames {
	n := portNames{map[string]int32{}, map[int32]string{}}
	for c := range serving(spec) {
		for i := range c.Ports {
			p := &c.Ports[i]
			if _, known := n.number[p.Name]; !known && isTCP(p) && canBeName(p.Name) {
				n.number[p.Name] = p.ContainerPort
			}
		}
	}
	for c := range serving(spec) {
		for i := range c.Ports {
			name := c.Ports[i].Name
			number, ok := n.number[name]
			if _, known := n.name[number]; ok && !known {
				n.name[number] = name
			}
		}
	}
	return n
}

// canBeName reports whether Kubernetes admits a port of that name, by its length.
func canBeName(name string) bool { return name != "" && len(name) <= maxPortName }

// resolve finds the port that an entry of the annotation means. One that is named by number
// has the name by which Services reach it. If none does, the sidecar's port gets a name of
// its own that they can target.
func (n portNames) resolve(entry string) (Port, error) {
	if number, err := strconv.ParseInt(entry, 10, 32); err == nil {
		if number < 1 || number > 65535 {
			return Port{}, fmt.Errorf("%d is not a port number", number)
		}
		app := int32(number)
		return Port{Name: cmp.Or(n.name[app], madeUpName(app)), App: app}, nil
	}
	if number, ok := n.number[entry]; ok {
		return Port{Name: entry, App: number}, nil
	}
	return Port{}, fmt.Errorf("no container declares a TCP port named %s", quote(entry))
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
		a.warn("%s is %s: %s; no port is skipped", key, quote(value), wrong)
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
	skipped, seen := map[int32]bool{}, map[string]bool{}
	for _, p := range skip {
		skipped[p.App] = true
	}
	for c := range serving(spec) {
		if isMesh(c) {
			continue
		}
		for i := range c.Ports {
			p := &c.Ports[i]
			if !isTCP(p) || !canBeName(p.Name) || !saysHTTP(p.Name) || seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			if !skipped[p.ContainerPort] {
				ports = append(ports, Port{Name: p.Name, App: p.ContainerPort})
			}
		}
	}
	return ports
}

// byApp keeps one of the ports with one number: connections are led by that alone.
// A name that the pod does not use goes, as no Service has to use it.
func byApp(ports []Port) []Port {
	var unique []Port
	seen := map[int32]bool{}
	for _, p := range ports {
		if seen[p.App] {
			continue
		}
		seen[p.App] = true
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
// the ports and the admin port. Another project's sidecar may hold the usual ones. There
// always is one, since a pod has at most maxPorts.
func assign(spec *corev1.PodSpec, ports []Port) (_ []Port, admin int32) {
	inUse := map[int32]bool{checkPort: true, rlsPort: true}
	for c := range serving(spec) {
		for i := range c.Ports {
			inUse[c.Ports[i].ContainerPort] = inUse[c.Ports[i].ContainerPort] || isTCP(&c.Ports[i])
		}
		for _, number := range meshes[c.Name].ports {
			inUse[number] = true
		}
	}
	for _, p := range ports {
		inUse[p.App] = true
	}
	next := func(number int32) int32 {
		for inUse[number] {
			number++
		}
		inUse[number] = true
		return number
	}
	admin = next(firstAdminPort)
	for i := range ports {
		ports[i].Listen = next(firstInboundPort)
	}
	return ports, admin
}
