package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// options are read from the environment, as make passes them.
type options struct {
	root     string // of the checkout
	assets   string
	dir      string
	duration time.Duration // 0: until Ctrl-C
	windows  int           // of the budget scene, to judge before it ends; 0: none
	scene    string
	store    v1alpha1.StoreType
}

// The scenes of the demo.
const (
	policyScene = "policy"
	poolScene   = "pool"
	budgetScene = "budget"
)

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
	if o.scene, err = readScene(os.Getenv("DEMO_SCENE")); err != nil {
		return o, err
	}
	if o.windows, err = readWindows(os.Getenv("DEMO_WINDOWS"), o.scene); err != nil {
		return o, err
	}
	o.store, err = readStore(os.Getenv("DEMO_STORE"))
	return o, err
}

func readScene(text string) (string, error) {
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "", policyScene:
		return policyScene, nil
	case poolScene, budgetScene:
		return text, nil
	default:
		return "", fmt.Errorf("DEMO_SCENE is %q; write policy, pool or budget", text)
	}
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

func readWindows(text, scene string) (int, error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("DEMO_WINDOWS is %q, not a positive number; write for example 2, or leave it out to judge none", text)
	}
	if scene != budgetScene {
		return 0, errors.New("DEMO_WINDOWS is set, but DEMO_SCENE is not budget")
	}
	return n, nil
}

func readStore(text string) (v1alpha1.StoreType, error) {
	switch text = strings.TrimSpace(text); strings.ToLower(text) {
	case "", "controller":
		return v1alpha1.ControllerStore, nil
	case "redis":
		return v1alpha1.RedisStoreType, nil
	case "postgres":
		return v1alpha1.PostgresStoreType, nil
	default:
		return "", fmt.Errorf("DEMO_STORE is %q; write Controller, Redis or Postgres", text)
	}
}
