//go:build helm

package charts_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testing/rendered"
)

func as[T any](t *testing.T, objects rendered.Objects, name string) *T {
	t.Helper()
	object, err := rendered.As[T](objects, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestValuesReachTheComponents sets everything that concerns both Deployments at once. Each
// has values of its own beside those that are for both.
func TestValuesReachTheComponents(t *testing.T) {
	both := []string{
		"--set", "images.controller.repository=registry.example/a/weir-controller,images.controller.tag=v1",
		"--set", "images.sidecar.repository=registry.example/a/weir-sidecar,images.sidecar.digest=sha256:" + strings.Repeat("a", 64),
		"--set", "images.pullPolicy=IfNotPresent,images.pullSecrets[0].name=registry",
		"--set", "controller.clusterName=eu-west,controller.federationSANs={hub.example.com,192.0.2.1}",
		"--set", "stores.allowCIDRs={127.0.0.0/8,::1/128},stores.denyCIDRs={192.0.2.0/24}",
		"--set", "webhook.clientCA=api-server",
		"--set-json", `federation.ids={"shop":["acme/*","world"],"*":[]}`,
	}
	for i, component := range []string{"controller", "webhook"} {
		both = append(both, "--set", strings.ReplaceAll(fmt.Sprintf(
			"X.replicas=%d,X.extraArgs={--log-level=%d},X.priorityClassName=p%[1]d,X.nodeSelector.pool=n%[1]d,"+
				"X.tolerations[0].key=t%[1]d,X.tolerations[0].operator=Exists,X.resources.limits.memory=%[1]dGi", i+3, i+3), "X", component))
	}
	objects := install(t, both...)
	for i, tc := range []struct {
		name, requests string
		args           []string
		env            corev1.EnvVar
		volumes        []corev1.Volume
	}{
		{
			name: "controller", requests: "128Mi", env: corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			args: []string{
				"--components=coordinator", "--cluster-name=eu-west", "--federation-ids=*=,shop=acme/*,shop=world", "--federation-sans=hub.example.com,192.0.2.1",
				"--allow-store-cidrs=127.0.0.0/8,::1/128", "--deny-store-cidrs=192.0.2.0/24", "--log-level=3",
			},
		},
		{
			name: "webhook", requests: "64Mi", env: corev1.EnvVar{Name: "SIDECAR_IMAGE", Value: "registry.example/a/weir-sidecar@sha256:" + strings.Repeat("a", 64)},
			args: []string{
				"--components=webhooks", "--sidecar-image=$(SIDECAR_IMAGE)", "--cluster-name=eu-west", "--federation-ids=*=,shop=acme/*,shop=world",
				"--webhook-client-ca=/etc/weir/client-ca/ca.crt", "--log-level=4",
			},
			volumes: []corev1.Volume{{Name: "client-ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "api-server"}}}}},
		},
	} {
		n := strconv.Itoa(i + 3)
		deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-"+tc.name)
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]
		for what, ok := range map[string]bool{
			"name":          container.Name == tc.name && pod.ServiceAccountName == "weir-"+tc.name,
			"image":         container.Image == "registry.example/a/weir-controller:v1",
			"environment":   reflect.DeepEqual(container.Env[0], tc.env),
			"pull policy":   container.ImagePullPolicy == corev1.PullIfNotPresent,
			"pull secrets":  slices.Equal(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}),
			"replicas":      *deployment.Spec.Replicas == int32(i+3),
			"priority":      pod.PriorityClassName == "p"+n,
			"arguments":     slices.Equal(container.Args, tc.args),
			"node selector": pod.NodeSelector["pool"] == "n"+n,
			"tolerations":   len(pod.Tolerations) == 1 && pod.Tolerations[0].Key == "t"+n,
			"resources":     container.Resources.Limits.Memory().String() == n+"Gi" && container.Resources.Requests.Memory().String() == tc.requests,
			"volumes":       reflect.DeepEqual(pod.Volumes, tc.volumes) && len(container.VolumeMounts) == len(tc.volumes),
		} {
			if !ok {
				t.Errorf("%s of the %s: not as the values say: %+v", what, tc.name, deployment.Spec)
			}
		}
	}
}

// TestPortsMoveTogether: one value moves the listener and the container's port, and what
// finds that by its name, the Services, probes and the NetworkPolicy, follows.
func TestPortsMoveTogether(t *testing.T) {
	objects := install(t, "--set", "networkPolicy.enabled=true,webhook.hostNetwork=true",
		"--set", "controller.ports.fleet=16030,controller.ports.hub=16040,controller.ports.metrics=16080,controller.ports.health=16081",
		"--set", "webhook.ports.webhook=10250,webhook.ports.metrics=17080,webhook.ports.health=17081")
	for _, tc := range []struct {
		name     string
		args     []string // after the components
		ports    map[string]int32
		services []string
	}{
		{
			"controller",
			[]string{"--fleet-bind-address=:16030", "--health-probe-bind-address=:16081", "--federation-bind-address=:16040", "--metrics-bind-address=:16080"},
			map[string]int32{"fleet": 16030, "hub": 16040, "metrics": 16080, "health": 16081},
			[]string{"fleet", "hub"},
		},
		{
			"webhook",
			[]string{"--sidecar-image=$(SIDECAR_IMAGE)", "--health-probe-bind-address=:17081", "--metrics-bind-address=:17080", "--webhook-port=10250"},
			map[string]int32{"webhook": 10250, "metrics": 17080, "health": 17081},
			[]string{"webhook"},
		},
	} {
		deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-"+tc.name)
		pod := deployment.Spec.Template.Spec
		container := pod.Containers[0]
		if !slices.Equal(container.Args[1:], tc.args) {
			t.Errorf("%s: arguments %q, want %q", tc.name, container.Args[1:], tc.args)
		}
		ports := map[string]int32{}
		for _, port := range container.Ports {
			ports[port.Name] = port.ContainerPort
		}
		if !maps.Equal(ports, tc.ports) {
			t.Errorf("%s: ports %v, want %v", tc.name, ports, tc.ports)
		}
		if l, r := container.LivenessProbe.HTTPGet.Port.StrVal, container.ReadinessProbe.HTTPGet.Port.StrVal; l != "health" || r != "health" {
			t.Errorf("%s: the probes ask the ports %q and %q", tc.name, l, r)
		}
		for _, name := range tc.services {
			service := as[corev1.Service](t, objects, "Service/weir-"+name)
			if target := service.Spec.Ports[0].TargetPort.StrVal; target != name || service.Spec.Selector["app.kubernetes.io/component"] != tc.name {
				t.Errorf("Service weir-%s targets %s of %v", name, target, service.Spec.Selector)
			}
		}
		for _, rule := range as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/weir-"+tc.name).Spec.Ingress {
			for _, port := range rule.Ports {
				if ports[port.Port.StrVal] == 0 {
					t.Errorf("the NetworkPolicy weir-%s admits %s", tc.name, port.Port.String())
				}
			}
		}
		// A node has each of these ports once, so an update cannot begin with one pod more.
		onHost, dns, surge, unavailable := false, corev1.DNSPolicy(""), 1, 0
		if tc.name == "webhook" {
			onHost, dns, surge, unavailable = true, corev1.DNSClusterFirstWithHostNet, 0, 1
		}
		rolling := deployment.Spec.Strategy.RollingUpdate
		if pod.HostNetwork != onHost || pod.DNSPolicy != dns || rolling.MaxSurge.IntValue() != surge || rolling.MaxUnavailable.IntValue() != unavailable {
			t.Errorf("%s: host network %t with DNS %q, rolling by %+v", tc.name, pod.HostNetwork, pod.DNSPolicy, rolling)
		}
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
	for _, component := range []string{"controller", "webhook"} {
		for _, rule := range as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/weir-"+component).Spec.Ingress {
			for _, port := range rule.Ports {
				name := port.Port.StrVal
				if name == "metrics" {
					name = component + "'s metrics"
				}
				from[name] = append(from[name], rule.From...)
			}
		}
	}
	everyPod := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	monitoring := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "monitoring"}}}}
	want := map[string][]networkingv1.NetworkPolicyPeer{
		"webhook":              {{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.10/32"}}},
		"hub":                  {{IPBlock: &networkingv1.IPBlock{CIDR: "198.51.100.0/24"}}},
		"controller's metrics": monitoring, "webhook's metrics": monitoring,
		"fleet": everyPod,
	}
	if !reflect.DeepEqual(from, want) {
		t.Errorf("admitted are %v, want %v", from, want)
	}
}

// TestPlacementReachesTheComponents: what decides where their pods are, and how others see them.
func TestPlacementReachesTheComponents(t *testing.T) {
	for _, component := range []string{"controller", "webhook"} {
		t.Run(component, func(t *testing.T) { placementReaches(t, component) })
	}
}

func placementReaches(t *testing.T, component string) {
	t.Helper()
	usual := as[appsv1.Deployment](t, install(t), "Deployment/weir-"+component).Spec.Template
	template := as[appsv1.Deployment](t, install(
		t,
		"--set", strings.ReplaceAll("X.podLabels.team=platform,X.podAnnotations.note=a", "X", component),
		"--set", strings.ReplaceAll("X.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=rack", "X", component),
		"--set", strings.ReplaceAll("X.topologySpreadConstraints[0].topologyKey=zone,X.topologySpreadConstraints[0].maxSkew=1,X.topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule", "X", component),
	), "Deployment/weir-"+component).Spec.Template
	for key, value := range usual.Labels {
		if template.Labels[key] != value {
			t.Errorf("the pods lost the label %s", key)
		}
	}
	affinity := template.Spec.Affinity.PodAntiAffinity
	for what, ok := range map[string]bool{
		"labels":      template.Labels["team"] == "platform",
		"annotations": template.Annotations["note"] == "a" && template.Annotations["kubectl.kubernetes.io/default-container"] == component,
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
	got := as[appsv1.Deployment](t, objects, "Deployment/weir-webhook").Spec.Template.Spec.Containers[0].Args
	want := []string{
		"--components=webhooks", "--sidecar-image=$(SIDECAR_IMAGE)", "--default-capture=port", "--sidecar-image-pull-policy=Always",
		"--sidecar-image-pull-secrets=registry,mirror", "--sidecar-memory-limit=0", "--sidecar-cpu-request=50m",
	}
	if !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

// TestValuesReachTheBuiltInRoles: each kind is given to each role by itself.
func TestValuesReachTheBuiltInRoles(t *testing.T) {
	const budget, policy, pool = "ClusterRole/weir-budget-editor", "ClusterRole/weir-policy-editor", "ClusterRole/weir-pool-editor"
	for set, want := range map[string]map[string][]string{ // what roles are added to, of those that differ from the usual
		"rbac.aggregateToEdit.federatedBudgets=true":                                               {budget: {"admin", "edit"}},
		"rbac.aggregateToAdmin.federatedBudgets=true":                                              {budget: {"admin"}},
		"rbac.aggregateToEdit.rateLimitPolicies=false":                                             {policy: {"admin"}},
		"rbac.aggregateToEdit.concurrencyPools=false,rbac.aggregateToAdmin.concurrencyPools=false": {pool: nil},
		"rbac.aggregateToView=false":                                                               {"ClusterRole/weir-policy-viewer": nil},
		"rbac.aggregateToAdmin.resets=false":                                                       {"ClusterRole/weir-policy-resetter": nil},
	} {
		usual := aggregated(install(t))
		maps.Copy(usual, want)
		if got := aggregated(install(t, "--set", set)); !reflect.DeepEqual(got, usual) {
			t.Errorf("%s: roles are added to %v, want %v", set, got, usual)
		}
	}
}

// aggregated returns the built-in roles that each of the chart's is added to.
func aggregated(objects rendered.Objects) map[string][]string {
	all := map[string][]string{}
	for name, object := range objects {
		if object.GetKind() != "ClusterRole" {
			continue
		}
		all[name] = nil
		for _, label := range slices.Sorted(maps.Keys(object.GetLabels())) {
			if into, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				all[name] = append(all[name], into)
			}
		}
	}
	return all
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
	for alone, other := range map[string]string{"controller": "webhook", "webhook": "controller"} {
		objects := install(t, "--set", alone+".replicas=1")
		if objects["PodDisruptionBudget/weir-"+alone] != nil {
			t.Errorf("the disruption budget of a single replica would hold up every drain: %s", alone)
		}
		if objects["PodDisruptionBudget/weir-"+other] == nil {
			t.Errorf("the %s has no disruption budget", other)
		}
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
		{"webhook.extraArgs={--webhook-port=10250}", "--webhook-port=10250: set webhook.ports.webhook"},
		{"controller.extraArgs={--log-level=1,--metrics-bind-address=:9090}", "set controller.ports.metrics"},
		{"controller.extraArgs={--health-probe-bind-address=:9091}", "set controller.ports.health"},
		{"controller.ports.health=8080", "controller.ports has one number twice"},
		{"webhook.ports.health=9443", "webhook.ports has one number twice"},
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
		{"webhook.ports.webhook=443", "/webhook/ports/webhook"},
		{"webhook.hostNetwork=yes", "/webhook/hostNetwork"},
		{"webhook.clientCA=API Server", "/webhook/clientCA"},
		{"sidecar.imagePullPolicy=always", "/sidecar/imagePullPolicy"},
		{"sidecar.resources.request.cpu=1", "request"},
		{"monitoring.labels.release=1", "/monitoring/labels/release"},
		{"federation.ids.Shop={acme/*}", "/federation/ids"},
		{"federation.ids.shop={acme*}", "/federation/ids/shop/0"},
		{"federation.ids.shop=acme", "/federation/ids/shop"},
		{"rbac.aggregateToEdit.federatedBudgets=never", "/rbac/aggregateToEdit/federatedBudgets"},
		{"rbac.aggregateToEdit.resets=true", "resets"},
	} {
		t.Run(tc.set, func(t *testing.T) {
			_, err := rendered.Helm(chart, namespace, "--set", tc.set)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "schema") {
				t.Errorf("got %v, want an error of the schema that names %s", err, tc.says)
			}
		})
	}
}
