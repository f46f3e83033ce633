package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/devcluster/process"
)

// redisServer is the store of the demo's policy when DEMO_REDIS asks for it.
type redisServer struct {
	address string
	process *process.Process
}

// startRedis starts redis-server on a free port.
func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is not installed; `make deps` installs it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, err
	}
	address := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	p, err := process.Start(process.Spec{
		Path: program, Env: os.Environ(), Log: filepath.Join(dir, "logs", "redis-server.log"),
		Args: []string{
			"--port", fmt.Sprint(address.Port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--dir", dir, "--maxmemory-policy", "noeviction",
		},
	})
	if err != nil {
		return nil, err
	}
	r := &redisServer{address: address.String(), process: p}
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.address)
		if err == nil {
			return r, conn.Close()
		}
		select {
		case <-p.Done():
			return nil, fmt.Errorf("redis-server ended, see %s", filepath.Join(dir, "logs", "redis-server.log"))
		case <-ctx.Done():
			r.stop()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *redisServer) stop() { r.process.Kill() }

func (r *redisServer) port() string { return r.address[strings.LastIndexByte(r.address, ':')+1:] }
