package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// TestReviewsHoldUpNoHandOver: no rate of this client's holds them up, and they use up
// nothing that the terms are written with.
func TestReviewsHoldUpNoHandOver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	config := &rest.Config{Host: server.URL, QPS: 1e-6, Burst: 2, RateLimiter: flowcontrol.NewTokenBucketRateLimiter(1e-6, 2)}
	reviews, _, terms, err := coordinatorClients(config, "weir-system")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := reviews.Create(ctx, &authenticationv1.TokenReview{}, metav1.CreateOptions{}); err != nil {
			t.Fatalf("review %d: %v", i, err)
		}
	}
	if _, err := terms.Create(ctx, &corev1.ConfigMap{}, metav1.CreateOptions{}); err != nil {
		t.Errorf("the terms wait for reviews: %v", err)
	}
}
