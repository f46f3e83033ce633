//go:build e2e

package e2e

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// template is a pod of the test application, as the strictest profile of pod
// security wants it. Nothing in it knows of Weir.
func (s *shop) template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "checkout", "workload": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(15)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(20000)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "app", Image: "weir-test-app:" + os.Getenv(imagesVersion), Args: []string{"serve"},
				Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: httpOn(intstr.FromString("http"))},
				Env: []corev1.EnvVar{
					{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					{Name: "TALLY", Value: "tally." + s.namespace + ".svc:9000"},
				},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

func httpOn(port intstr.IntOrString) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: port}}
}

func tcpOn(port int) corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}
}

// deploy runs the application and returns when its pods are ready.
func (s *shop) deploy(ctx context.Context, replicas int32, mutate ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	GinkgoHelper()
	return s.deployAs(ctx, "checkout", replicas, mutate...)
}

// deployAs is deploy under a name.
func (s *shop) deployAs(ctx context.Context, name string, replicas int32, mutate ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	GinkgoHelper()
	template := s.template(name)
	for _, m := range mutate {
		m(&template)
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"workload": name}},
		},
	}
	Expect(s.kube.Create(ctx, d)).To(Succeed())
	s.awaitReady(ctx, "workload="+name, int(replicas))
	return d
}

// service is a Service in front of what a label selects by its value.
func (s *shop) service(name, value string, port int32, target any) *corev1.Service {
	key := "workload"
	if value == "tally" || value == "backend" {
		key = "role"
	}
	to := intstr.FromString("")
	switch target := target.(type) {
	case int:
		to = intstr.FromInt(target)
	case string:
		to = intstr.FromString(target)
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{key: value},
			Ports:    []corev1.ServicePort{{Port: port, TargetPort: to}},
		},
	}
}

// awaitRoutes returns a node that has the rules of the Service, which packets to its
// address are rejected without.
func (s *shop) awaitRoutes(ctx context.Context, to *corev1.Service) string {
	GinkgoHelper()
	probe := s.bystander("routes-"+to.Name, "tally")
	probe.Labels["role"] = "routes"
	probe.Spec.Containers[0].ReadinessProbe.TCPSocket = &corev1.TCPSocketAction{
		Host: to.Spec.ClusterIP, Port: intstr.FromInt32(to.Spec.Ports[0].Port),
	}
	Expect(s.kube.Create(ctx, probe)).To(Succeed())
	s.awaitReady(ctx, "role=routes", 1)
	Expect(s.kube.Get(ctx, client.ObjectKeyFromObject(probe), probe)).To(Succeed())
	return probe.Spec.NodeName
}
