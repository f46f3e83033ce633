//go:build fleet

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/testing/devcluster/process"
	"github.com/weir-dev/weir/internal/testing/freeport"
)

// A prometheus is a server that scrapes the controllers and the sidecars of one shop, as the
// PodMonitors of config/monitoring have one do, but each second.
type prometheus struct{ address string }

// A series is one of the answer to a query.
type series struct {
	Metric map[string]string
	Value  [2]any // seconds, and the number as a text
}

// startPrometheus starts one with the alerts of config/monitoring, which promtool has checked.
func startPrometheus(ctx context.Context, s *shop) *prometheus {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	write := func(name string, content any) string {
		GinkgoHelper()
		text, err := yaml.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
		return path
	}
	var rules struct {
		Spec any `json:"spec"`
	}
	Expect(yaml.Unmarshal(monitoring("rules.yaml"), &rules)).To(Succeed())
	alerts := write("rules.yaml", rules.Spec)
	out, err := exec.CommandContext(ctx, "promtool", "check", "rules", alerts).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s; `make test-fleet` installs it", out)

	address, err := freeport.Address()
	Expect(err).NotTo(HaveOccurred())
	config := write("prometheus.yaml", map[string]any{
		"global":         map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{alerts},
		"scrape_configs": s.scrapes(ctx),
	})
	program, err := exec.LookPath("prometheus")
	Expect(err).NotTo(HaveOccurred(), "run the suite with `make test-fleet`, which installs it")
	server, err := process.Start(process.Spec{
		Path: program, Env: os.Environ(), Log: filepath.Join(workDir, "logs", "prometheus.log"),
		Args: []string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	p := &prometheus{address: address}
	Eventually(func(g Gomega) {
		up := p.query(ctx, g, `count(up == 1)`)
		g.Expect(up).To(ConsistOf(HaveField("Value", HaveExactElements(Not(BeNil()), Equal(fmt.Sprint(2+len(s.endpoints(ctx))))))))
	}, longest, 500*time.Millisecond).Should(Succeed(), "targets do not answer")
	return p
}

// scrapes returns the configuration for the controllers and for the shop's sidecars.
func (s *shop) scrapes(ctx context.Context) []map[string]any {
	GinkgoHelper()
	targets := func(namespace, pod, address string) map[string]any {
		return map[string]any{"targets": []string{address}, "labels": map[string]string{"namespace": namespace, "pod": pod}}
	}
	var sidecars []map[string]any
	for _, e := range s.endpoints(ctx) {
		sidecars = append(sidecars, targets(e.Namespace, e.Pod, e.Admin))
	}
	return []map[string]any{
		{
			"job_name": "weir-controller", "honor_labels": true,
			"static_configs": []map[string]any{
				targets(system, "weir-controller-0", s.cluster.Controller.MetricsAddress()),
				targets(system, "weir-webhook-0", s.cluster.Webhooks.MetricsAddress()),
			},
		},
		{
			"job_name": "weir-sidecars", "static_configs": sidecars, "sample_limit": 10_000, "label_limit": 20,
			"metric_relabel_configs": []map[string]any{{"action": "labeldrop", "regex": "exported_namespace"}},
		},
	}
}

// monitoring reads a file of config/monitoring.
func monitoring(name string) []byte {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "config", "monitoring", name))
	Expect(err).NotTo(HaveOccurred())
	return text
}

// query returns the series that a query has now.
func (p *prometheus) query(ctx context.Context, g Gomega, query string) []series {
	var answer struct {
		Error string
		Data  struct{ Result []series }
	}
	p.get(ctx, g, "query?query="+url.QueryEscape(query), &answer)
	g.Expect(answer.Error).To(BeEmpty(), query)
	return answer.Data.Result
}

// health returns what became of the evaluation of each alert, by its name.
func (p *prometheus) health(ctx context.Context, g Gomega) map[string]string {
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	p.get(ctx, g, "rules", &answer)
	all := map[string]string{}
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			all[rule.Name] = rule.Health + rule.LastError
		}
	}
	return all
}

func (p *prometheus) get(ctx context.Context, g Gomega, path string, into any) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+path, http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	g.Expect(json.NewDecoder(response.Body).Decode(into)).To(Succeed())
}
