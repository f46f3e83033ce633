package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// patches are merge patches of the demo's policy, by file.
func (s *stores) patches() map[string]string {
	const limit = "spec: {limits: [{name: all, "
	out := map[string]string{
		"fixed-window.yaml":   limit + "algorithm: FixedWindow, rates: [{limit: 500, window: 20s}]}]}",
		"sliding-window.yaml": limit + "algorithm: SlidingWindow, buckets: 60, rates: [{limit: 500, window: 20s}]}]}",
		"sliding-log.yaml":    limit + "algorithm: SlidingLog, rates: [{limit: 500, window: 20s}]}]}",
		"token-bucket.yaml":   limit + "algorithm: TokenBucket, rates: [{limit: 500, window: 20s, burst: 100}]}]}",
		"gcra.yaml":           limit + "algorithm: GCRA, rates: [{limit: 500, window: 20s, burst: 100}]}]}",
		"leased.yaml":         "spec: {consistency: {mode: Leased, lease: null}}",
		"cached-deny.yaml":    "spec: {consistency: {mode: CachedDeny, lease: null}}",
		"strict.yaml":         "spec: {consistency: {mode: Strict, lease: null}}",
		"controller.yaml":     s.patch(v1alpha1.ControllerStore, "redis: null, postgres: null"),
	}
	if s.redis != nil {
		out["redis.yaml"] = s.patch(v1alpha1.RedisStoreType, "postgres: null")
	}
	if s.postgres != nil {
		out["postgres.yaml"] = s.patch(v1alpha1.PostgresStoreType, "redis: null")
	}
	return out
}

// patch changes the store and takes the settings of the other types away.
func (s *stores) patch(to v1alpha1.StoreType, without string) string {
	return "spec: {store: " + strings.TrimSuffix(s.spec(to), "}") + ", " + without + "}}"
}

// edits returns the names of the patches.
func (s *stores) edits() []string { return slices.Sorted(maps.Keys(s.patches())) }

// poolPatches are merge patches of the demo's pool, by file.
func poolPatches() map[string]string {
	return map[string]string{
		"gradient.yaml":  "spec: {algorithm: {type: Gradient2, backoffPercent: null}, limit: {min: 4, initial: 12, max: 100}}",
		"aimd.yaml":      "spec: {algorithm: {type: AIMD}, limit: {min: 4, initial: 12, max: 100}}",
		"fixed.yaml":     "spec: {algorithm: {type: Fixed, baseline: null, tolerancePercent: null, backoffPercent: null}, limit: {min: null, initial: null, max: 12}}",
		"by-demand.yaml": "spec: {allocation: DemandProportional}",
		"evenly.yaml":    "spec: {allocation: EqualSplit}",
		"queue.yaml":     "spec: {queue: {maxLength: 20, maxWait: 200ms}}",
		"no-queue.yaml":  "spec: {queue: null}",
		"shadow.yaml":    "spec: {mode: Shadow}",
		"enforce.yaml":   "spec: {mode: Enforce}",
	}
}

// writeEdits leaves patches where the hints say.
func (d *demo) writeEdits(patches map[string]string) error {
	dir := filepath.Join(d.dir, "edits")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, patch := range patches {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(patch+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
