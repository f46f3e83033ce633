//go:build !linux

package monotonic

import "errors"

// resumes are not reported on this system.
type resumes struct{}

func listen() (*resumes, error) { return nil, errors.ErrUnsupported }

func (*resumes) await() bool { return false }
func (*resumes) close()      {}
