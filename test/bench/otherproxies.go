package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weir-dev/weir/internal/testing/freeport"
)

// haproxyConfig is what a plain reverse proxy needs, over HTTP/1.1 and for gRPC.
const haproxyConfig = `
global
  maxconn 4096
defaults
  mode http
  option http-keep-alive
  option forwardfor
  http-reuse always
  timeout connect 5s
  timeout client 75s
  timeout server 75s
frontend http
  bind %[1]s
  default_backend http
backend http
  server app %[3]s
frontend grpc
  bind %[2]s proto h2
  default_backend grpc
backend grpc
  server app %[3]s proto h2
`

// nginxConfig is the same. It hands bodies on as they come, as the others do.
const nginxConfig = `
daemon off;
master_process off;
pid %[4]s/nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[4]s/body;
  proxy_temp_path %[4]s/proxy;
  fastcgi_temp_path %[4]s/fastcgi;
  uwsgi_temp_path %[4]s/uwsgi;
  scgi_temp_path %[4]s/scgi;
  keepalive_timeout 75s;
  keepalive_requests 1000000000;
  client_max_body_size 0;
  proxy_buffering off;
  proxy_request_buffering off;
  upstream http { server %[3]s; keepalive 256; keepalive_requests 1000000000; }
  upstream grpc { server %[3]s; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen %[1]s;
    location / {
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_pass http://http;
    }
  }
  server {
    listen %[2]s http2;
    location / { grpc_pass grpc://grpc; }
  }
}
`

func (w *ways) startHAProxy(app string) error {
	return w.startOther("haproxy", haproxyConfig, app, func(file string) []string { return []string{"-q", "-db", "-f", file} })
}

func (w *ways) startNginx(app string) error {
	return w.startOther("nginx", nginxConfig, app, func(file string) []string { return []string{"-e", "stderr", "-c", file} })
}

// startOther runs a program of the system that takes HTTP/1.1 and gRPC on two ports.
func (w *ways) startOther(name, config, app string, args func(file string) []string) error {
	program, err := exec.LookPath(name)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return fmt.Errorf("%s is not installed: install it with your system's package manager; `make bench` does", name)
	}
	calls, err := freeport.Address()
	if err != nil {
		return err
	}
	opened, err := w.start(name, nil, program, func(listen string) []string {
		file := filepath.Join(w.dir, name+".conf")
		must(os.WriteFile(file, fmt.Appendf(nil, config, listen, calls, app, w.dir), 0o600))
		return args(file)
	})
	if err == nil {
		opened.calls = calls
	}
	return err
}
