//go:build e2e

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A newcomer", func() {
	It("labels a namespace, applies a few lines, and sees the limit held exactly", func(ctx SpecContext) {
		s := openShop(ctx)
		s.deploy(ctx, 4)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.awaitProgrammed(ctx, 4)
		s.startLoad(ctx, overload)

		start := nextWindow().Add(window) // the store grants nothing in a window that began before it
		s.awaitFull(ctx, start, 3)
		s.nobodyMissed(ctx, start)
		s.awaitExact(ctx, start.Add(window))

		table := s.kubectl(ctx, "-n", s.namespace, "get", "ratelimitpolicies")
		GinkgoWriter.Print(table)
		row := strings.Split(strings.TrimSpace(table), "\n")[1]
		Expect(row).To(MatchRegexp(`^checkout +Enforce +200/5s +4/4 +\S+ +\S+ +\d+/200 +0 ≤ 0 +\S+ +Hard +True `))
		Expect(s.kubectl(ctx, "-n", s.namespace, "get", "events")).To(ContainSubstring("Injected"))
	}, SpecTimeout(3*time.Minute))
})
