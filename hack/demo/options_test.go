package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestDurationIsPositive(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, " 45s ": 45 * time.Second, "1m": time.Minute} {
		if got, err := readDuration(text); err != nil || got != want {
			t.Errorf("readDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "0s", "-5s", "60", "soon"} {
		if got, err := readDuration(text); err == nil || !strings.Contains(err.Error(), "for example 60s") {
			t.Errorf("readDuration(%q) = %v, %v; want an error that names the cure", text, got, err)
		}
	}
}

func TestTheSceneIsOneThatThereIs(t *testing.T) {
	for text, want := range map[string]string{"": policyScene, " Pool": poolScene, "budget": budgetScene, "policy": policyScene} {
		if got, err := readScene(text); err != nil || got != want {
			t.Errorf("readScene(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := readScene("pools"); err == nil || !strings.Contains(err.Error(), "policy, pool or budget") {
		t.Errorf("readScene(pools) = %v, %v; want an error that names the cure", got, err)
	}
}

func TestWindowsAreOfTheBudgetScene(t *testing.T) {
	for text, want := range map[string]int{"": 0, " 2 ": 2} {
		if got, err := readWindows(text, budgetScene); err != nil || got != want {
			t.Errorf("readWindows(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "2s", "two"} {
		if got, err := readWindows(text, budgetScene); err == nil || !strings.Contains(err.Error(), "for example 2") {
			t.Errorf("readWindows(%q) = %v, %v; want an error that names the cure", text, got, err)
		}
	}
	if got, err := readWindows("2", policyScene); err == nil || !strings.Contains(err.Error(), "is not budget") {
		t.Errorf("windows of the policy scene = %v, %v; want an error that names the scene", got, err)
	}
}

func TestTheStoreIsOneThatThereIs(t *testing.T) {
	for text, want := range map[string]v1alpha1.StoreType{
		"": v1alpha1.ControllerStore, "redis": v1alpha1.RedisStoreType, " Postgres ": v1alpha1.PostgresStoreType,
	} {
		if got, err := readStore(text); err != nil || got != want {
			t.Errorf("readStore(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	if got, err := readStore("1"); err == nil || !strings.Contains(err.Error(), "Controller, Redis or Postgres") {
		t.Errorf("readStore(1) = %v, %v; want an error that names the cure", got, err)
	}
}
