package podrunner

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster/process"
)

// program returns what stands for the container: the program of its image with
// the arguments and the environment of its spec.
func (c *container) program() (process.Spec, error) {
	if c.spec.Name == inject.CaptureContainerName {
		return process.Spec{}, fmt.Errorf("container %s would redirect packets, and pods that run as processes have no network of their own:"+
			" annotate the namespace %s: port", c.spec.Name, v1alpha1.CaptureAnnotation)
	}
	path, ok := c.pod.Program(c.pod.object, c.spec.Image)
	if !ok {
		return process.Spec{}, fmt.Errorf("no local program stands for image %q", c.spec.Image)
	}
	values, env, err := c.environment()
	if err != nil {
		return process.Spec{}, err
	}
	var args []string
	if len(c.spec.Command) > 0 {
		args = append(args, c.spec.Command[1:]...) // its first word is the program
	}
	args = append(args, c.spec.Args...)
	for i := range args {
		args[i] = expand(args[i], values)
	}
	o := c.pod.object
	return process.Spec{Path: path, Args: args, Env: env, Log: c.pod.logFile(o.Namespace, o.Name, c.spec.Name)}, nil
}

// environment resolves the container's variables in their order.
func (c *container) environment() (values map[string]string, env []string, err error) {
	values = map[string]string{}
	set := func(name, value string) {
		values[name] = value
		env = append(env, name+"="+value)
	}
	set("PATH", "/usr/local/bin:/usr/bin:/bin")
	for _, v := range c.spec.Env {
		value := expand(v.Value, values)
		if v.ValueFrom != nil {
			if value, err = c.resolve(v.ValueFrom); err != nil {
				return nil, nil, fmt.Errorf("variable %s: %w", v.Name, err)
			}
		}
		set(v.Name, value)
	}
	set("WEIR_SANDBOX_DIR", c.pod.rootOf(c.spec.Name))
	set("WEIR_SANDBOX_IP", c.pod.ip.String())
	return values, env, nil
}

// resolve returns the value of the downward API.
func (c *container) resolve(from *corev1.EnvVarSource) (string, error) {
	switch {
	case from.FieldRef != nil:
		return c.pod.field(from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return c.resource(from.ResourceFieldRef)
	default:
		return "", fmt.Errorf("only fieldRef and resourceFieldRef have a meaning here")
	}
}

// field returns a field of the pod by its downward API path.
func (p *pod) field(path string) (string, error) {
	o := p.object
	fields := map[string]string{
		"metadata.name":           o.Name,
		"metadata.namespace":      o.Namespace,
		"metadata.uid":            string(o.UID),
		"spec.nodeName":           o.Spec.NodeName,
		"spec.serviceAccountName": o.Spec.ServiceAccountName,
		"status.podIP":            p.ip.String(),
		"status.podIPs":           p.ip.String(),
		"status.hostIP":           p.Network.NodeAddress().String(),
	}
	if value, ok := fields[path]; ok {
		return value, nil
	}
	for prefix, entries := range map[string]map[string]string{"metadata.labels['": o.Labels, "metadata.annotations['": o.Annotations} {
		if name, ok := strings.CutPrefix(path, prefix); ok {
			return entries[strings.TrimSuffix(name, "']")], nil
		}
	}
	return "", fmt.Errorf("unknown field %q", path)
}

// resource returns a request or limit of the container in units of the
// divisor, rounded up; a limit that is not set is that of the node.
func (c *container) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := c.spec.Resources.Limits
	if kind == "requests" {
		list = c.spec.Resources.Requests
	}
	amount := list[corev1.ResourceName(name)]
	if amount.IsZero() && kind == "limits" {
		return "", fmt.Errorf("%s is not set on container %s", ref.Resource, c.spec.Name)
	}
	divisor := ref.Divisor
	return strconv.FormatInt(int64(math.Ceil(amount.AsApproximateFloat64()/cmp.Or(divisor.AsApproximateFloat64(), 1))), 10), nil
}

// expand replaces $(NAME) by the variable's value; $$ is a dollar sign, and a
// name that is not set stays as it is written.
func expand(s string, values map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		value, known := values[name]
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			s = after[1:]
		case strings.HasPrefix(after, "(") && closed && known:
			b.WriteString(value)
			s = rest
		default:
			b.WriteByte('$')
			s = after
		}
	}
}
