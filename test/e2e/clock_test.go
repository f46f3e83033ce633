//go:build e2e

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

// skew is how far the wall clock of a skewed sidecar is ahead.
const skew = 10 * time.Minute

var _ = Describe("A sidecar whose wall clock is ten minutes off", func() {
	It("admits no more and no less with the others", func(ctx SpecContext) {
		Expect(skewedSidecar()).To(BeARegularFile())
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 3, nil)
		shop.deploy(ctx, "late", 1, map[string]string{skewedLabel: "yes"})

		var skewed traffic.Target
		for _, t := range shop.targets(ctx) {
			if strings.HasPrefix(t.Pod, "late-") {
				skewed = t
			}
		}
		Expect(clockOf(ctx, skewed)).To(BeTemporally("~", time.Now().Add(skew), 5*time.Second))

		shop.startLoad(overload)
		start := shop.warmUp(ctx)
		Expect(shop.windows(ctx, start, 3)).To(HaveEach(limit))
		Expect(shop.tally.Pod(skewed.Pod).Between(start, start.Add(3*shop.window))).To(BeNumerically(">", 0))
	}, SpecTimeout(4*time.Minute))
})

// clockOf reads the time that a sidecar puts into its answers.
func clockOf(ctx SpecContext, t traffic.Target) time.Time {
	GinkgoHelper()
	// The check API answers without the application, which would set the date.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+strings.Replace(t.Address, ":15006", ":15020", 1)+"/livez", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	date, err := http.ParseTime(resp.Header.Get("Date"))
	Expect(err).NotTo(HaveOccurred())
	return date
}

// skewedSidecar builds the sidecar on a standard library whose time.Now is off,
// so that nothing in the product knows of it: a static program reads the clock
// without a system call or a library that could be replaced. Only wall-clock
// seconds move; monotonic time stays.
var skewedSidecar = sync.OnceValue(func() string {
	dir := filepath.Join(root, "bin")
	original := filepath.Join(runtime.GOROOT(), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	Expect(err).NotTo(HaveOccurred())
	const read = "sec, nsec, mono := runtimeNow()"
	Expect(string(source)).To(ContainSubstring(read), "time.Now of this Go version is written differently")
	shifted := strings.ReplaceAll(string(source), read, read+"\n\tsec += 600")
	replacement := filepath.Join(dir, "time_skewed.go.txt")
	Expect(os.WriteFile(replacement, []byte(shifted), 0o644)).To(Succeed())
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	Expect(err).NotTo(HaveOccurred())
	overlayFile := filepath.Join(dir, "overlay.json")
	Expect(os.WriteFile(overlayFile, overlay, 0o644)).To(Succeed())

	program := filepath.Join(dir, "sidecar-skewed")
	build := exec.Command("go", "build", "-trimpath", "-overlay", overlayFile, "-o", program, "./cmd/sidecar")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return program
})
