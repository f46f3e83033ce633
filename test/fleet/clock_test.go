//go:build fleet

package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/devcluster"
)

// skew is how far the wall clock of a skewed sidecar is off.
const skew = 10 * time.Minute

// skewedLabel on a pod asks for a sidecar whose wall clock is wrong, by its
// value.
const (
	skewedLabel = "clock"
	ahead       = "ahead"
	behind      = "behind"
)

var _ = Describe("Sidecars whose wall clocks are ten minutes off", func() {
	It("admit no more and no less with the others", func(ctx SpecContext) {
		Expect(skewableSidecar()).To(BeARegularFile()) // a build of up to two minutes
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 2, nil)
		shop.deploy(ctx, ahead, 1, map[string]string{skewedLabel: ahead})
		shop.deploy(ctx, behind, 1, map[string]string{skewedLabel: behind})

		var skewed []string
		for _, e := range shop.endpoints(ctx) {
			switch {
			case strings.HasPrefix(e.Pod, ahead):
				Expect(clockOf(ctx, e)).To(BeTemporally("~", time.Now().Add(skew), time.Minute))
				skewed = append(skewed, e.Pod)
			case strings.HasPrefix(e.Pod, behind):
				Expect(clockOf(ctx, e)).To(BeTemporally("~", time.Now().Add(-skew), time.Minute))
				skewed = append(skewed, e.Pod)
			}
		}
		Expect(skewed).To(HaveLen(2))

		start := shop.leaveCredits(ctx)
		looked := len(shop.awaitFull(ctx, start, 3))
		for _, pod := range skewed {
			Expect(shop.tally.Pod(pod).Between(start, start.Add(time.Duration(looked)*shop.window))).To(BeNumerically(">", 0), pod)
		}
	}, SpecTimeout(6*time.Minute))
})

// clockOf reads the time that a sidecar puts into its own answers.
func clockOf(ctx SpecContext, e devcluster.Endpoint) time.Time {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Admin+"/livez", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	date, err := http.ParseTime(resp.Header.Get("Date"))
	Expect(err).NotTo(HaveOccurred())
	return date
}

// skewedSidecar returns a program that runs the sidecar with a wrong wall clock.
func skewedSidecar(direction string) string {
	seconds := int(skew.Seconds())
	if direction == behind {
		seconds = -seconds
	}
	script := filepath.Join(workDir, "sidecar-"+direction)
	content := fmt.Sprintf("#!/bin/sh\nexport WALL_CLOCK_SKEW=%d\nexec %s \"$@\"\n", seconds, skewableSidecar())
	Expect(os.WriteFile(script, []byte(content), 0o755)).To(Succeed())
	return script
}

// skewableSidecar builds the sidecar on a standard library whose time.Now is off
// by $WALL_CLOCK_SKEW seconds, so that nothing in the product knows of it: a
// static program reads the clock without a system call or a library that could
// be replaced. Monotonic time, which no machine sets, stays as it is.
var skewableSidecar = sync.OnceValue(func() string {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	Expect(err).NotTo(HaveOccurred())
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	Expect(err).NotTo(HaveOccurred())
	const imports, read = "import (\n", "sec, nsec, mono := runtimeNow()\n"
	Expect(string(source)).To(And(ContainSubstring(imports), ContainSubstring(read)), "time.Now of this Go version is written differently")
	skewed := strings.Replace(string(source), imports, imports+"\t\"syscall\"\n", 1)
	skewed = strings.Replace(skewed, read, read+"\tsec += wallClockSkew\n", 1) + `
var wallClockSkew = func() int64 {
	value, _ := syscall.Getenv("WALL_CLOCK_SKEW")
	seconds, _ := atoi(value)
	return int64(seconds)
}()
`
	replacement := filepath.Join(workDir, "time.go")
	Expect(os.WriteFile(replacement, []byte(skewed), 0o644)).To(Succeed())
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	Expect(err).NotTo(HaveOccurred())
	overlayFile := filepath.Join(workDir, "overlay.json")
	Expect(os.WriteFile(overlayFile, overlay, 0o644)).To(Succeed())

	program := filepath.Join(workDir, "sidecar-skewable")
	build := exec.Command("go", "build", "-trimpath", "-overlay", overlayFile, "-o", program, "./cmd/sidecar")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return program
})
