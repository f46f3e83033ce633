package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

// fetch gets the URL that the second argument names, and fails unless that is
// answered with success within ten seconds: what an init container or a Job needs of
// its network.
func fetch(ctx context.Context) error {
	if len(os.Args) < 3 {
		return fmt.Errorf("usage: app fetch URL")
	}
	ctx, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Args[2], http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", os.Args[2], answer.Status)
	}
	return nil
}
