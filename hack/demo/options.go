package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// options are read from the environment, as make passes them.
type options struct {
	root     string // of the checkout
	assets   string
	dir      string
	duration time.Duration // 0: until Ctrl-C
	redis    bool
}

func readOptions() (options, error) {
	root, err := os.Getwd()
	if err != nil {
		return options{}, err
	}
	o := options{root: root, dir: filepath.Join(root, ".demo"), assets: os.Getenv("KUBEBUILDER_ASSETS")}
	if o.assets == "" {
		return o, errors.New("KUBEBUILDER_ASSETS is not set; start the demo with `make demo`")
	}
	if o.duration, err = readDuration(os.Getenv("DEMO_DURATION")); err != nil {
		return o, err
	}
	o.redis, err = readSwitch(os.Getenv("DEMO_REDIS"))
	return o, err
}

func readDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("DEMO_DURATION is %q, not a positive duration; write for example 60s, or leave it out to run until Ctrl-C", text)
	}
	return d, nil
}

func readSwitch(text string) (bool, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("DEMO_REDIS is %q; write 1, or leave it out to count in the controller", text)
	}
	return on, nil
}
