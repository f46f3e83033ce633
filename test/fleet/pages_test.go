//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/proof/docs"
)

// guided are the pages whose commands a reader has for a cluster with the shop of the examples. The
// last one opts the namespace out.
var guided = []string{
	"docs/guides.md", "docs/gitops.md", "docs/migration.md", "docs/kubectl.md", "docs/policies.md", "docs/pools.md",
	"docs/operations.md", "docs/troubleshooting.md", "docs/injection.md", "docs/install.md",
}

// unrun has the beginnings of commands that this machine cannot run, each with the reason.
var unrun = map[string]string{
	"kubectl -n shop get ratelimitpolicies -w": "does not end",
	"kubectl -n argocd":                        "Argo CD is not installed here",
	"kubectl -n weir-system":                   "the controller is a process here",
	"kubectl label namespace weir-system":      "Helm made the namespace",
	"kubectl apply --server-side -f dist/":     "is of a release",
	"kubectl weir budget":                      "takes two clusters",
	"kubectl --context":                        "takes two clusters",
	"kubectl weir simulate":                    "takes the log of the reader",
	"kubectl weir suggest":                     "takes the log of the reader",
}

// examples are the objects that commands of the pages name, beside those of the samples.
const examples = `
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchLabels: {app: checkout}}
  store: {memory: Durable}
  limits:
  - {name: all, rates: [{limit: 500, window: 20s}]}
  - {name: per-user, key: {parts: [{type: Header, header: {name: x-user}}]}, rates: [{limit: 20, window: 20s}]}
---
apiVersion: weir.dev/v1alpha1
kind: ConcurrencyPool
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limit: {max: 400}
`

var commandLine = regexp.MustCompile(`^(kubectl|printf) `)

// commandsOf returns the commands of kubectl in the blocks of a page, each in one line.
func commandsOf(page string) (commands []string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	for _, b := range (&docs.Page{Path: page, Text: string(text)}).Blocks() {
		if b.Language != "" && b.Language != "sh" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.Text, "\\\n", " ")) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
			if commandLine.MatchString(line) {
				commands = append(commands, line)
			}
		}
	}
	return commands
}

// whyNot returns why a command is not run, "" for one that is.
func whyNot(command string) string {
	for beginning, reason := range unrun {
		if strings.HasPrefix(command, beginning) {
			return reason
		}
	}
	return ""
}

// blockOf returns the block of a page that has a text.
func blockOf(page, has string) []byte {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	blocks := (&docs.Page{Path: page, Text: string(text)}).Blocks()
	i := slices.IndexFunc(blocks, func(b docs.Block) bool { return strings.Contains(b.Text, has) })
	Expect(i).NotTo(Equal(-1), "%s has no block with %s", page, has)
	return []byte(blocks[i].Text)
}

// A terminal is that of a reader of the pages, in a checkout, with a kubeconfig for the namespace.
type terminal struct {
	shop *shop
	env  []string
}

func (s *shop) terminal(ctx context.Context) *terminal {
	GinkgoHelper()
	config, err := os.ReadFile(s.cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	own := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(own, config, 0o600)).To(Succeed())
	t := &terminal{s, append(os.Environ(), "KUBECONFIG="+own, "PATH="+os.Getenv(assets)+":"+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))}
	t.run(ctx, "kubectl config set-context --current --namespace="+s.namespace)
	return t
}

// run fails the spec when the command does. A second restart within a second fails at first, and so
// does a question to a pod that a restart has just replaced. Where a page names the pod checkout-1 it
// is one of the shop.
func (t *terminal) run(ctx context.Context, command string) {
	GinkgoHelper()
	Eventually(func() error {
		line := command
		if strings.Contains(line, "checkout-1") {
			line = strings.ReplaceAll(line, "checkout-1", t.shop.podOf(ctx, "checkout"))
		}
		cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
		cmd.Dir, cmd.Env = root, t.env
		out, err := cmd.CombinedOutput()
		fmt.Fprintf(GinkgoWriter, "$ %s\n%s", line, out)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		return nil
	}, 10*time.Second, time.Second).Should(Succeed())
}

var _ = Describe("The commands of the pages", func() {
	It("succeed in a cluster with the shop of the examples", func(ctx SpecContext) {
		s := openShopIn(ctx, here, metav1.ObjectMeta{Name: "shop"})
		for _, name := range []string{"checkout", "gateway", "mailer"} {
			Expect(s.kube.Create(ctx, s.deployment(name, 1, map[string]string{"app": name}))).To(Succeed())
		}
		s.awaitReady(ctx, 3)
		Expect(s.cluster.Apply(ctx, []byte(examples))).To(Succeed())
		Expect(s.cluster.Apply(ctx, blockOf("docs/guides.md", "name: tenants"))).To(Succeed())
		t := s.terminal(ctx)
		t.run(ctx, "kubectl apply -f config/samples/overrides.yaml")
		ran, skipped := 0, map[string]bool{}
		for _, page := range guided {
			for _, command := range commandsOf(page) {
				if reason := whyNot(command); reason != "" {
					skipped[reason] = true
					continue
				}
				t.run(ctx, command)
				ran++
			}
		}
		Expect(ran).To(BeNumerically(">=", 25))
		for beginning, reason := range unrun {
			Expect(skipped).To(HaveKey(reason), "no page has a command such as %s", beginning)
		}
	}, SpecTimeout(4*time.Minute))
})

// podOf returns a pod of a Deployment that is ready.
func (s *shop) podOf(ctx context.Context, deployment string) (name string) {
	GinkgoHelper()
	Eventually(func() string {
		for _, e := range s.endpoints(ctx) {
			if strings.HasPrefix(e.Pod, deployment+"-") {
				name = e.Pod
			}
		}
		return name
	}, longest, time.Second).ShouldNot(BeEmpty())
	return name
}
