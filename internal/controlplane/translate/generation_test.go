package translate_test

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestGenerationOrdersTheVersionsOfAName(t *testing.T) {
	at := func(created time.Time, generation int64) int64 {
		return translate.Generation(&metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), Generation: generation})
	}
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	versions := []int64{
		at(born, 1),
		at(born, 2),
		at(born, 1_000_000),
		at(born.Add(time.Second), 1), // deleted and created again
		at(born.Add(time.Second), 2),
		at(born.Add(time.Hour), 1),
		at(time.Date(2240, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxInt64),
		limiter.MaxGeneration,
	}
	for i := 1; i < len(versions); i++ {
		if versions[i-1] >= versions[i] {
			t.Errorf("version %d is %d, not below %d", i, versions[i-1], versions[i])
		}
	}
}

func TestGenerationOfAnObjectThatIsNotCreatedYet(t *testing.T) {
	if got := translate.Generation(&metav1.ObjectMeta{Generation: 1}); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}
