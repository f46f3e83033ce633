//go:build fleet

package fleet

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var _ = Describe("Alerts", func() {
	It("fire where something is wrong, and nowhere else", func(ctx SpecContext) {
		var rules struct {
			Spec struct {
				Groups []struct {
					Name  string           `json:"name"`
					Rules []map[string]any `json:"rules"`
				} `json:"groups"`
			} `json:"spec"`
		}
		Expect(yaml.Unmarshal(monitoring("rules.yaml"), &rules)).To(Succeed())
		for _, g := range rules.Spec.Groups {
			for _, r := range g.Rules {
				delete(r, "annotations") // the examples would have to repeat them
			}
		}
		bare, err := yaml.Marshal(rules.Spec)
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "rules.yaml"), bare, 0o600)).To(Succeed())
		examples := filepath.Join(dir, "alerts.yaml")
		Expect(os.WriteFile(examples, monitoring("testdata/alerts.yaml"), 0o600)).To(Succeed())
		out, err := exec.CommandContext(ctx, "promtool", "test", "rules", examples).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s; `make test-fleet` installs promtool", out)
	})
})
