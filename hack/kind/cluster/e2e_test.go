//go:build e2e

package cluster_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-dev/weir/hack/kind/cluster"
	"github.com/weir-dev/weir/hack/kind/docker"
)

const appImage = "weir-kind-test:v1"

// Two clusters on one machine: pods reach the API server, names, Services and
// the pods of other nodes and of the other cluster, with their own addresses.
func TestTwoClusters(t *testing.T) {
	ctx := t.Context()
	if err := cluster.Check(ctx); err != nil {
		t.Skip(err)
	}
	archive := packApp(t)
	first := newSite(t, "weir-test-1", 1, archive)
	second := newSite(t, "weir-test-2", 0, archive)
	if err := first.Join(ctx, second.Cluster); err != nil {
		t.Fatal(err)
	}
	if err := second.Join(ctx, first.Cluster); err != nil {
		t.Fatal("joining again:", err)
	}
	for _, s := range []site{first, second} {
		caller := s.pods[len(s.pods)-1]
		if version := s.ask(t, caller, "/api"); !strings.Contains(version, "gitVersion") {
			t.Errorf("the API server answers %q", version)
		}
		for _, other := range slices.Concat(first.pods, second.pods) {
			seen := s.ask(t, caller, "/fetch?url="+url.QueryEscape("http://"+other+":8080/caller"))
			if host, _, _ := net.SplitHostPort(seen); host != caller {
				t.Errorf("%s is called by %q, want %s", other, seen, caller)
			}
		}
		for range 5 { // both endpoints, and itself
			seen := s.ask(t, caller, "/fetch?url="+url.QueryEscape("http://app.default.svc/caller"))
			if _, _, err := net.SplitHostPort(seen); err != nil {
				t.Errorf("the Service answers %q", seen)
			}
		}
	}
}

// site is a cluster with the test's program on every node.
type site struct {
	*cluster.Cluster
	pods []string // their addresses, in the order of the nodes
}

func newSite(t *testing.T, name string, workers int, archive string) site {
	ctx := t.Context()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	c, err := cluster.Create(ctx, cluster.Config{Name: name, Workers: workers, Kubeconfig: kubeconfig, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteAll(t, c, name, kubeconfig) })
	began := time.Now()
	if err := c.Load(ctx, archive); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded onto %d nodes in %s", workers+1, time.Since(began).Round(time.Millisecond))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "app"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	if _, err := client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := site{Cluster: c}
	for _, node := range c.Nodes() {
		s.pods = append(s.pods, startPod(t, client, node))
	}
	return s
}

// startPod runs the program on a node and returns its address.
func startPod(t *testing.T, client kubernetes.Interface, node string) string {
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"app": "app"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "app", Image: appImage}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		got, err := pods.Get(deadline, node, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("pod %s: %v", node, err)
		}
		if got.Status.Phase == corev1.PodRunning && got.Status.PodIP != "" {
			return got.Status.PodIP
		}
		select {
		case <-again.C:
		case <-deadline.Done():
			t.Fatalf("pod %s does not run: %+v", node, got.Status)
		}
	}
}

// ask has a node ask one of its cluster's pods, again while the Service's rules
// are on their way.
func (s site) ask(t *testing.T, pod, path string) string {
	t.Helper()
	out, err := s.Exec(t.Context(), s.Nodes()[0], "curl", "--silent", "--show-error", "--fail-with-body",
		"--retry", "10", "--retry-delay", "1", "--retry-all-errors", "--max-time", "20", "http://"+pod+":8080"+path)
	if err != nil {
		t.Errorf("%s of %s: %v: %s", path, pod, err, out)
	}
	return string(out)
}

// packApp builds the program into an image FROM scratch.
func packApp(t *testing.T) string {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "app"), "./testapp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	layer := filepath.Join(dir, "layer.tar")
	if out, err := exec.CommandContext(t.Context(), "tar", "--create", "--file", layer, "-C", dir, "app").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	archive := filepath.Join(dir, "image.tar")
	for _, args := range [][]string{
		{"import", "--change", `ENTRYPOINT ["/app"]`, "--change", "USER 65532:65532", layer, appImage},
		{"save", "--output", archive, appImage},
		{"image", "rm", appImage},
	} {
		if _, err := docker.Output(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	return archive
}

// deleteAll deletes a cluster and looks for what it may have left.
func deleteAll(t *testing.T, c *cluster.Cluster, name, kubeconfig string) {
	ctx := context.WithoutCancel(t.Context()) // it has ended
	volumes, err := docker.Output(ctx, append([]string{"inspect", "--format", "{{range .Mounts}}{{.Name}} {{end}}"}, c.Nodes()...)...)
	if err != nil || volumes == "" {
		t.Errorf("volumes of the nodes: %q, %v", volumes, err)
	}
	began := time.Now()
	if err := c.Delete(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("deleted %s in %s", name, time.Since(began).Round(time.Millisecond))
	if left, err := docker.Output(ctx, "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name); err != nil || left != "" {
		t.Errorf("containers left: %q, %v", left, err)
	}
	for volume := range strings.FieldsSeq(volumes) {
		if _, err := docker.Output(ctx, "volume", "inspect", volume); err == nil {
			t.Errorf("volume left: %s", volume)
		}
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig file is left: %v", err)
	}
}
