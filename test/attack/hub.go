package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/federationpb"
)

// wanted is a command of the hostile member that a hub serves.
func wanted() *federationpb.ApplyRequest {
	return &federationpb.ApplyRequest{Budget: budgetID, WindowMicros: budgetWindow.Microseconds(), Command: &federationpb.Command{
		Op: federationpb.Command_OP_LEASE, Member: foe, Holder: "evil", Seq: 1, Min: 1, Want: 1, Demand: 1, Weight: 1,
	}}
}

// calls makes a call as a caller.
func calls(as func(context.Context, *world) (caller, error)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		c, err := as(ctx, w)
		if err != nil {
			return "", err
		}
		return w.apply(ctx, c, wanted())
	}
}

// applies makes a call as the hostile member.
func applies(edit func(*federationpb.ApplyRequest)) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		c, err := w.as(ctx, foe)
		if err != nil {
			return "", err
		}
		r := wanted()
		edit(r)
		return w.apply(ctx, c, r)
	}
}

func (w *world) apply(ctx context.Context, c caller, r *federationpb.ApplyRequest) (string, error) {
	ctx, calls, conn, err := w.dial(ctx, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	g, err := calls.Apply(ctx, r)
	if err != nil {
		return err.Error(), nil
	}
	return g.String(), nil
}

// spend sends commands for some windows, and returns by window what was granted of it at most.
func (w *world) spend(ctx context.Context, next func(i int, last *federationpb.Grant) *federationpb.Command) (string, error) {
	c, err := w.as(ctx, foe)
	if err != nil {
		return "", err
	}
	ctx, calls, conn, err := w.dial(ctx, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	granted := map[string]int64{}
	last := &federationpb.Grant{}
	answered := 0
	for until := time.Now().Add(2 * budgetWindow); time.Now().Before(until); answered++ {
		r := wanted()
		r.Command = next(answered, last)
		g, err := calls.Apply(ctx, r)
		if err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return err.Error(), nil
		}
		last = g
		epoch := g.GetEpoch().String()
		granted[epoch] = max(granted[epoch], g.GetGranted())
		sleepUntil(ctx, time.Now().Add(5*time.Millisecond))
	}
	for epoch, n := range granted {
		if n > budgetLimit {
			return fmt.Sprintf("%d units of epoch %s", n, epoch), nil
		}
	}
	return fmt.Sprintf("%d answers, all of %d epochs within the limit", answered, len(granted)), nil
}

// greed asks for as much as can be named.
func greed(ctx context.Context, w *world) (string, error) {
	const most = 1_000_000_000_000 // more is refused
	return w.spend(ctx, func(i int, last *federationpb.Grant) *federationpb.Command {
		c := wanted().GetCommand()
		c.Holder, c.Seq, c.Epoch, c.Granted = "greedy", int64(i+1), last.GetEpoch(), last.GetGranted()
		c.Want, c.Demand, c.Weight = most, most, 1000
		return c
	})
}

// replays sends what was sent already, with what it was granted forgotten.
func replays(ctx context.Context, w *world) (string, error) {
	return w.spend(ctx, func(i int, last *federationpb.Grant) *federationpb.Command {
		c := wanted().GetCommand()
		c.Holder, c.Want = "forgetful", 50
		c.Seq = int64(1 + i/3) // each three times
		if i%2 == 0 {
			c.Epoch = last.GetEpoch()
		}
		return c
	})
}

func observes(id string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		c, err := w.as(ctx, foe)
		if err != nil {
			return "", err
		}
		ctx, calls, conn, err := w.dial(ctx, c)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		s, err := calls.Observe(ctx, &federationpb.ObserveRequest{Budget: id})
		return fmt.Sprint(s, " ", err), nil
	}
}

// renews asks for a certificate in a name.
func renews(name string) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return "", err
		}
		csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}}, key)
		if err != nil {
			return "", err
		}
		return renewsWith(csr)(ctx, w)
	}
}

func renewsWith(csr []byte) func(context.Context, *world) (string, error) {
	return func(ctx context.Context, w *world) (string, error) {
		c, err := w.as(ctx, foe)
		if err != nil {
			return "", err
		}
		ctx, calls, conn, err := w.dial(ctx, c)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		got, err := calls.Renew(ctx, &federationpb.RenewRequest{Csr: csr})
		if err != nil {
			return err.Error(), nil
		}
		block, _ := pem.Decode(got.GetCertificate())
		if block == nil {
			return "", errors.New("what the hub gave is not PEM")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("certificate of %s %v", certificate.Subject.CommonName, certificate.DNSNames), nil
	}
}

// hubFlood has the hostile member call as often as it can.
func hubFlood(ctx context.Context, w *world) (string, error) {
	c, err := w.as(ctx, foe)
	if err != nil {
		return "", err
	}
	called, calls, conn, err := w.dial(ctx, c)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	const atOnce = 50
	lost := make(chan int, atOnce)
	until := time.Now().Add(3 * time.Second)
	for i := range atOnce {
		go func() {
			n := 0
			for seq := int64(1); time.Now().Before(until); seq++ {
				r := wanted()
				r.Command.Holder, r.Command.Seq = fmt.Sprintf("evil-%d", i), seq
				if _, err := calls.Apply(called, r); err != nil {
					n++
				}
			}
			lost <- n
		}()
	}
	sum := 0
	for range atOnce {
		sum += <-lost
	}
	return fmt.Sprintf("%d without an answer", sum), nil
}

// deletedToken uses what a Secret held that the administrator deleted.
func deletedToken(ctx context.Context, w *world) (string, error) {
	c, err := w.as(ctx, foe)
	if err != nil {
		return "", err
	}
	secret, err := w.memberSecret(ctx, foe)
	if err != nil {
		return "", err
	}
	if err := w.kube.Delete(ctx, secret); err != nil {
		return "", err
	}
	answer := ""
	err = await(ctx, "that the old token is refused", func() error {
		var err error
		if answer, err = w.apply(ctx, c, wanted()); err == nil && !strings.Contains(answer, "Unauthenticated") {
			err = errors.New(answer)
		}
		return err
	})
	return answer, err
}
