package nodeimage

import (
	"context"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"

	"github.com/weir-dev/weir/hack/kind/docker"
	"github.com/weir-dev/weir/hack/kind/machine"
	"github.com/weir-dev/weir/hack/kind/progress"
)

// Ensure returns the name of a node image that the engine holds. It may build
// for minutes; the log says so.
func Ensure(ctx context.Context, log progress.Log) (string, error) {
	s, err := newSource(ctx)
	if err != nil {
		return "", err
	}
	for _, image := range []string{s.image(), defaults.Image} {
		if docker.HasImage(ctx, image) {
			return image, nil
		}
	}
	lock, err := machine.Lock("node-image", func() { log.Say("waiting for another process that provides the node image") })
	if err != nil {
		return "", err
	}
	defer lock.Close()
	archive, err := s.archive()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(archive); err == nil {
		return s.image(), load(ctx, log, archive, s.image())
	}
	err = pull(ctx, log, defaults.Image)
	if err == nil {
		return defaults.Image, nil
	}
	log.Say("kind's own image cannot be pulled (%v)", err)
	if err := s.build(ctx, log, archive); err != nil {
		return "", err
	}
	return s.image(), nil
}

// load puts an archive into the engine, unless the process that held the lock
// before has done so.
func load(ctx context.Context, log progress.Log, archive, image string) error {
	if docker.HasImage(ctx, image) {
		return nil
	}
	return log.Do("loading the node image from "+archive, "about 10 seconds", func() error {
		_, err := docker.Output(ctx, "load", "--input", archive)
		return err
	})
}

// hesitation is how long a registry may take to say that it has an image. What
// follows, the transfer, is not limited.
const hesitation = 10 * time.Second

// pull fetches an image where a registry answers in time.
func pull(ctx context.Context, log progress.Log, image string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(hesitation, func() { cancel(fmt.Errorf("no registry answered in %s", hesitation)) })
	defer silence.Stop()
	log.Say("trying to pull %s (at most %s until it begins)", image, hesitation)
	err := docker.Pipe(ctx, nil, first{silence}, "pull", image)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// first stops a timer at the first byte that is written to it.
type first struct{ timer *time.Timer }

func (f first) Write(p []byte) (int, error) {
	f.timer.Stop()
	return len(p), nil
}
