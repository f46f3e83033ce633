package translate

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// generationBits is the room of metadata.generation below the creation time. The
// whole stays within limiter.MaxGeneration until the year 2242.
const generationBits = 20

// Generation returns the number by which stores and sidecars order the versions
// of a policy. metadata.generation alone would not do: it starts again at 1 when
// an object is deleted and created again. Stores that still hold the counts of its
// predecessor would refuse it as older. So the second of its creation comes first, and the
// generation decides among the versions of one object.
func Generation(p metav1.Object) int64 {
	generation := min(p.GetGeneration(), 1<<generationBits-1)
	if created := p.GetCreationTimestamp(); !created.IsZero() {
		generation += created.Unix() << generationBits
	}
	return generation
}
