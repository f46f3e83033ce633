package journals

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/store/memory"
)

// A carrier carries the records of one policy.
type carrier struct {
	*Journals
	*memory.Journal
	version string
}

func (c *carrier) policy() string { return c.Namespace() + "/" + c.Policy() }

// carry has a journal go on from what was written last, and writes its records until the
// term ends or another has begun.
func (j *Journals) carry(k *memory.Journal) {
	select {
	case <-j.known:
	case <-j.ctx.Done():
		return
	}
	c := &carrier{Journals: j, Journal: k}
	if !j.retry(c.load, c.fail) {
		return
	}
	for {
		data, after, err := k.Next()
		switch {
		case err != nil:
			c.fail(err)
			return
		case data != nil:
			if !c.write(data) {
				return
			}
			continue
		case after == 0:
			after = time.Hour
		}
		if !j.pause(after, k.Wake()) {
			return
		}
	}
}

func (c *carrier) fail(err error) {
	c.Fail(err)
	c.Log.Error(err, "what durable counters may grant cannot be set aside; trying again", "policy", c.policy())
}

func (c *carrier) load(ctx context.Context) error {
	data, version, err := c.Store.Load(ctx, c.policy())
	if err != nil {
		return err
	}
	c.version = version
	if err := c.Load(data, c.gaps); err != nil {
		return fmt.Errorf("delete %s, and the open windows of its policy grant nothing until they end: %w", c.Store.Object(c.policy()), err)
	}
	return nil
}

// write writes a record, again and again until it is known that it, or another, is there.
// It returns false when the term is over.
func (c *carrier) write(data []byte) bool {
	over, again := false, false
	ok := c.retry(func(ctx context.Context) error {
		version, failed := c.Store.Save(ctx, c.policy(), data, c.version)
		if failed == nil {
			c.version = version
			return nil
		}
		found, version, err := c.Store.Load(ctx, c.policy())
		if err != nil {
			return failed
		}
		switch {
		case bytes.Equal(found, data):
			c.version = version
			return nil
		case version == c.version:
			return failed
		}
		term, err := memory.RecordTerm(found)
		switch {
		case found != nil && err != nil:
			return err
		case term > c.Term:
			over = true
			return nil
		case !c.Began():
			again = true
			return nil
		}
		c.version = version // it is gone, or a term before has written what does not count
		return failed
	}, c.fail)
	switch {
	case !ok:
		return false
	case over:
		c.Fence()
		return false
	case again:
		return c.retry(c.load, c.fail)
	}
	c.Written()
	return true
}
