//go:build helm

package charts_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/rendered"
)

func as[T any](t *testing.T, objects rendered.Objects, name string) *T {
	t.Helper()
	object, err := rendered.As[T](objects, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestValuesReachTheController sets everything that concerns the Deployment at once.
func TestValuesReachTheController(t *testing.T) {
	objects := install(
		t,
		"--set", "images.controller.repository=registry.example/a/weir-controller,images.controller.tag=v1",
		"--set", "images.sidecar.repository=registry.example/a/weir-sidecar,images.sidecar.digest=sha256:"+strings.Repeat("a", 64),
		"--set", "images.pullPolicy=IfNotPresent,images.pullSecrets[0].name=registry",
		"--set", "controller.replicas=3,controller.clusterName=eu-west,controller.priorityClassName=",
		"--set", "controller.federationSANs={hub.example.com,192.0.2.1},controller.extraArgs={--log-level=1}",
		"--set", "stores.allowCIDRs={127.0.0.0/8,::1/128},stores.denyCIDRs={192.0.2.0/24}",
		"--set", "controller.nodeSelector.pool=system,controller.tolerations[0].key=system,controller.tolerations[0].operator=Exists",
		"--set", "controller.resources.limits.memory=1Gi",
	)
	deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-controller")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	wantArgs := []string{
		"--sidecar-image=$(SIDECAR_IMAGE)", "--cluster-name=eu-west", "--federation-sans=hub.example.com,192.0.2.1",
		"--allow-store-cidrs=127.0.0.0/8,::1/128", "--deny-store-cidrs=192.0.2.0/24", "--log-level=1",
	}
	for what, ok := range map[string]bool{
		"image":         container.Image == "registry.example/a/weir-controller:v1",
		"sidecar":       container.Env[0] == corev1.EnvVar{Name: "SIDECAR_IMAGE", Value: "registry.example/a/weir-sidecar@sha256:" + strings.Repeat("a", 64)},
		"pull policy":   container.ImagePullPolicy == corev1.PullIfNotPresent,
		"pull secrets":  slices.Equal(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}),
		"replicas":      *deployment.Spec.Replicas == 3,
		"priority":      pod.PriorityClassName == "",
		"arguments":     slices.Equal(container.Args, wantArgs),
		"node selector": pod.NodeSelector["pool"] == "system",
		"tolerations":   len(pod.Tolerations) == 1 && pod.Tolerations[0].Key == "system",
		"resources":     container.Resources.Limits.Memory().String() == "1Gi" && container.Resources.Requests.Memory().String() == "128Mi",
	} {
		if !ok {
			t.Errorf("%s: not as the values say: %+v", what, deployment.Spec)
		}
	}
}

// TestPortsMoveTogether: one value moves the listener and the container's port, and what
// finds that by its name, the Services, probes and the NetworkPolicy, follows.
func TestPortsMoveTogether(t *testing.T) {
	objects := install(t, "--set", "networkPolicy.enabled=true,controller.hostNetwork=true",
		"--set", "controller.ports.webhook=10250,controller.ports.fleet=16030,controller.ports.hub=16040,controller.ports.metrics=16080,controller.ports.health=16081")
	deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-controller")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	wantArgs := []string{
		"--sidecar-image=$(SIDECAR_IMAGE)", "--fleet-bind-address=:16030", "--health-probe-bind-address=:16081",
		"--federation-bind-address=:16040", "--metrics-bind-address=:16080", "--webhook-port=10250",
	}
	if !slices.Equal(container.Args, wantArgs) {
		t.Errorf("arguments %q, want %q", container.Args, wantArgs)
	}
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	if want := map[string]int32{"webhook": 10250, "fleet": 16030, "hub": 16040, "metrics": 16080, "health": 16081}; !maps.Equal(ports, want) {
		t.Errorf("ports %v, want %v", ports, want)
	}
	if l, r := container.LivenessProbe.HTTPGet.Port.StrVal, container.ReadinessProbe.HTTPGet.Port.StrVal; l != "health" || r != "health" {
		t.Errorf("the probes ask the ports %q and %q", l, r)
	}
	for _, name := range []string{"webhook", "fleet", "hub"} {
		port := as[corev1.Service](t, objects, "Service/weir-"+name).Spec.Ports[0]
		if port.TargetPort.StrVal != name {
			t.Errorf("Service weir-%s targets %s", name, port.TargetPort.String())
		}
	}
	for _, rule := range as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/weir-controller").Spec.Ingress {
		for _, port := range rule.Ports {
			if ports[port.Port.StrVal] == 0 {
				t.Errorf("the NetworkPolicy admits %s", port.Port.String())
			}
		}
	}
	// A node has each of these ports once, so an update cannot begin with one pod more.
	if rolling := deployment.Spec.Strategy.RollingUpdate; !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || rolling.MaxSurge.IntValue() != 0 || rolling.MaxUnavailable.IntValue() != 1 {
		t.Errorf("host network %t with DNS %s, rolling by %+v", pod.HostNetwork, pod.DNSPolicy, rolling)
	}
}

// TestTheNetworkPolicyAdmitsWhomTheValuesName: each port's callers are named by
// themselves, and sidecars, which may be in any namespace, always get through.
func TestTheNetworkPolicyAdmitsWhomTheValuesName(t *testing.T) {
	objects := install(
		t,
		"--set", "networkPolicy.enabled=true,networkPolicy.from.webhook[0].ipBlock.cidr=192.0.2.10/32,networkPolicy.from.hub[0].ipBlock.cidr=198.51.100.0/24",
		"--set", "networkPolicy.from.metrics[0].namespaceSelector.matchLabels.team=monitoring",
	)
	from := map[string][]networkingv1.NetworkPolicyPeer{}
	for _, rule := range as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/weir-controller").Spec.Ingress {
		for _, port := range rule.Ports {
			from[port.Port.StrVal] = append(from[port.Port.StrVal], rule.From...)
		}
	}
	everyPod := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	want := map[string][]networkingv1.NetworkPolicyPeer{
		"webhook": {{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.10/32"}}},
		"hub":     {{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.100.0/24"}}},
		"metrics": {{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "monitoring"}}}},
		"fleet":   everyPod,
	}
	if !reflect.DeepEqual(from, want) {
		t.Errorf("admitted are %v, want %v", from, want)
	}
}

// TestPlacementReachesTheController: what decides where its pods are, and how others see them.
func TestPlacementReachesTheController(t *testing.T) {
	usual := as[appsv1.Deployment](t, install(t), "Deployment/weir-controller").Spec.Template
	template := as[appsv1.Deployment](t, install(
		t,
		"--set", "controller.podLabels.team=platform,controller.podAnnotations.note=a",
		"--set", "controller.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=rack",
		"--set", "controller.topologySpreadConstraints[0].topologyKey=zone,controller.topologySpreadConstraints[0].maxSkew=1,controller.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule",
	), "Deployment/weir-controller").Spec.Template
	for key, value := range usual.Labels {
		if template.Labels[key] != value {
			t.Errorf("the pods lost the label %s", key)
		}
	}
	affinity := template.Spec.Affinity.PodAntiAffinity
	for what, ok := range map[string]bool{
		"labels":      template.Labels["team"] == "platform",
		"annotations": template.Annotations["note"] == "a" && template.Annotations["kubectl.kubernetes.io/default-container"] == "controller",
		"affinity":    affinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey == "rack" && affinity.PreferredDuringSchedulingIgnoredDuringExecution == nil,
		"spread":      template.Spec.TopologySpreadConstraints[0].TopologyKey == "zone",
	} {
		if !ok {
			t.Errorf("%s: not as the values say: %+v", what, template)
		}
	}
}

func TestValuesReachTheSidecars(t *testing.T) {
	objects := install(
		t,
		"--set", "sidecar.imagePullPolicy=Always,sidecar.imagePullSecrets[0].name=registry,sidecar.imagePullSecrets[1].name=mirror",
		"--set", "sidecar.resources.requests.cpu=50m,sidecar.resources.limits.memory=0,sidecar.defaultCapture=port",
	)
	got := as[appsv1.Deployment](t, objects, "Deployment/weir-controller").Spec.Template.Spec.Containers[0].Args
	want := []string{
		"--sidecar-image=$(SIDECAR_IMAGE)", "--default-capture=port", "--sidecar-image-pull-policy=Always",
		"--sidecar-image-pull-secrets=registry,mirror", "--sidecar-memory-limit=0", "--sidecar-cpu-request=50m",
	}
	if !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

func TestMonitorsAreLabelled(t *testing.T) {
	objects := install(t, "--set", "monitoring.enabled=true,monitoring.labels.release=prometheus")
	for _, name := range []string{"PodMonitor/weir-controller", "PodMonitor/weir-sidecars", "PrometheusRule/weir"} {
		if l := objects[name].GetLabels(); l["release"] != "prometheus" || l["app.kubernetes.io/part-of"] != "weir" {
			t.Errorf("%s has the labels %v", name, l)
		}
	}
}

func TestValuesReachTheWebhooks(t *testing.T) {
	objects := install(t, "--set", "webhook.failurePolicy=Ignore,webhook.timeoutSeconds=3")
	for _, webhook := range as[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration/weir-injector").Webhooks {
		if *webhook.FailurePolicy != admissionregistrationv1.Ignore || *webhook.TimeoutSeconds != 3 {
			t.Errorf("%s: failurePolicy %s, timeoutSeconds %d; want Ignore, 3", webhook.Name, *webhook.FailurePolicy, *webhook.TimeoutSeconds)
		}
	}
}

func TestTheHubIsReachableWhenAsked(t *testing.T) {
	objects := install(t, "--set", "hub.serviceType=LoadBalancer,hub.serviceAnnotations.internal=yes")
	service := as[corev1.Service](t, objects, "Service/weir-hub")
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Annotations["internal"] != "yes" {
		t.Errorf("type %q, annotations %v", service.Spec.Type, service.Annotations)
	}
}

func TestPartsAreLeftOut(t *testing.T) {
	if objects := install(t, "--set", "controller.replicas=1"); objects["PodDisruptionBudget/weir-controller"] != nil {
		t.Error("the disruption budget of a single replica would hold up every drain")
	}
	for name := range install(t, "--set", "crds.install=false") {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			t.Errorf("%s is installed although crds.install is false", name)
		}
	}
}

// TestContradictionsAreRefused: what the schema cannot know.
func TestContradictionsAreRefused(t *testing.T) {
	for _, tc := range []struct{ set, says string }{
		{"controller.extraArgs={--webhook-port=10250}", "--webhook-port=10250: set controller.ports.webhook"},
		{"controller.extraArgs={--log-level=1,--metrics-bind-address=:9090}", "set controller.ports.metrics"},
		{"controller.extraArgs={--health-probe-bind-address=:9091}", "set controller.ports.health"},
		{"controller.ports.health=8080", "controller.ports has one number twice"},
	} {
		if _, err := rendered.Helm(chart, namespace, "--set", tc.set); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error that says %q", tc.set, err, tc.says)
		}
	}
	if _, err := rendered.Helm(chart, namespace, "--set", "controller.extraArgs={--federation-bind-address=0}"); err != nil {
		t.Errorf("a listener cannot be turned off: %v", err)
	}
}

// TestWrongValuesAreRefused shows that the schema names the value.
func TestWrongValuesAreRefused(t *testing.T) {
	for _, tc := range []struct{ set, says string }{
		{"webhook.failurePolicy=Sometimes", "/webhook/failurePolicy"},
		{"controller.replicas=0", "/controller/replicas"},
		{"controller.replicas=two", "/controller/replicas"},
		{"controller.replica=3", "replica"},
		{"controller.clusterName=EU West", "/controller/clusterName"},
		{"controller.extraArgs={log-level=1}", "/controller/extraArgs/0"},
		{"images.sidecar.digest=latest", "/images/sidecar/digest"},
		{"images.controller.repository=", "/images/controller/repository"},
		{"images.pullPolicy=Sometimes", "/images/pullPolicy"},
		{"networkPolicy.enabled=maybe", "/networkPolicy/enabled"},
		{"networkPolicy.from.webhook={192.0.2.10/32}", "/networkPolicy/from/webhook/0"},
		{"networkPolicy.from.webhook[0].cidr=192.0.2.10/32", "cidr"},
		{"hub.serviceType=Public", "/hub/serviceType"},
		{"networkPolicies.enabled=true", "networkPolicies"},
		{"controller.ports.webhook=443", "/controller/ports/webhook"},
		{"controller.hostNetwork=yes", "/controller/hostNetwork"},
		{"sidecar.imagePullPolicy=always", "/sidecar/imagePullPolicy"},
		{"sidecar.resources.request.cpu=1", "request"},
		{"monitoring.labels.release=1", "/monitoring/labels/release"},
	} {
		t.Run(tc.set, func(t *testing.T) {
			_, err := rendered.Helm(chart, namespace, "--set", tc.set)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "schema") {
				t.Errorf("got %v, want an error of the schema that names %s", err, tc.says)
			}
		})
	}
}
