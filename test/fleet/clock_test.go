//go:build fleet

package fleet

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
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
	offset := skew
	if direction == behind {
		offset = -skew
	}
	wrong, err := clock.New(filepath.Join(workDir, "clock-"+direction), offset, 0)
	Expect(err).NotTo(HaveOccurred())
	wrong.Close() // it stays wrong
	script, err := wrong.At(skewableSidecar(), workDir, "sidecar-"+direction)
	Expect(err).NotTo(HaveOccurred())
	return script
}

// skewableSidecar builds the sidecar with a clock of its own.
var skewableSidecar = sync.OnceValue(func() string {
	program, err := clock.Program(context.Background(), root, "./cmd/sidecar", workDir, "sidecar-skewable")
	Expect(err).NotTo(HaveOccurred())
	return program
})
